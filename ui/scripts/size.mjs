// The budget of the bundle (experience chapter §3.6): all scripts and styles, gzipped.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const BUDGET = 300 * 1024;

function sizeOf(dir) {
  let total = 0;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) total += sizeOf(path);
    else if (/\.(js|css|html|svg)$/.test(name)) total += gzipSync(readFileSync(path), { level: 9 }).length;
  }
  return total;
}

/** Says how large it is, and whether that is within the budget. */
export function withinBudget(dir) {
  const total = sizeOf(dir);
  console.log(`bundle: ${(total / 1024).toFixed(1)} KiB gzip of ${BUDGET / 1024}`);
  if (total > BUDGET) console.error('the bundle is over its budget; leave something out, or load it when it is needed');
  return total <= BUDGET;
}

if (import.meta.filename === process.argv[1] && !withinBudget(process.argv[2] ?? 'dist')) process.exit(1);
