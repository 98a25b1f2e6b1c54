import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'bigfleet-size-'));
  mkdirSync(join(dir, 'assets'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A bundle of so many KiB that do not compress, beside a licence that does not count. */
function exitOf(kib: number): number | null {
  writeFileSync(join(dir, 'assets/app.js'), randomBytes(kib * 1024));
  writeFileSync(join(dir, 'licences.txt'), randomBytes(400 * 1024));
  return spawnSync(process.execPath, ['scripts/size.mjs', dir]).status;
}

it('of a bundle within the budget is no failure', () => expect(exitOf(290)).toBe(0));
it('of a bundle over it is one', () => expect(exitOf(310)).toBe(1));
