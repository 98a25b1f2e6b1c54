// Recordings: what was made, and what is shown of it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ARTEFACTS } from './browser';
import { page, query, seen, stub, until } from './session';
import { Fleet, FULL, SMALL } from './stub/fleet';

describe('replay', () => {
  const AUDIT = [
    '{"time":"2026-11-16T03:12:00Z","cycle":10,"kind":"Provision","machine":"m-night","cluster":"night","reason":"phase1.speculative","grace_seconds":0,"outcome":"decided","seq":1099511627777,"need":"f","group":"","priority":100,"preemptor_priority":0,"cost":0.1,"runner_up_cost":0.38}',
    '{"time":"2026-11-16T03:12:20Z","cycle":10,"kind":"Provision","machine":"m-night","cluster":"night","reason":"phase1.speculative","grace_seconds":0,"outcome":"success","seq":1099511627778,"of":1099511627777,"need":"f","group":"","priority":100,"preemptor_priority":0,"cost":0.1,"runner_up_cost":null}',
  ];
  async function loadLog(): Promise<void> {
    const file = join(ARTEFACTS, 'shard-7.audit.jsonl');
    writeFileSync(file, AUDIT.join('\n'));
    await page.goto(stub.url('/replay'));
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen('Back to live');
  }
  it('shows a decision log on every screen, moment by moment', async () => {
    await loadLog();
    const asked = stub.asked.length;
    await page.getByRole('link', { name: 'Machines' }).first().click();
    await seen('m-night');
    await page.locator('tr', { hasText: 'm-night' }).getByText('configured', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'First moment' }).click();
    await page.locator('tr', { hasText: 'm-night' }).getByText('creating', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Decisions' }).first().click();
    await seen('create for night');
    await page.getByRole('link', { name: 'Needs' }).first().click();
    await page.locator('[data-state="unwired"]').getByText('not in the recording').waitFor();
    expect(stub.asked.slice(asked), 'nothing is asked of the server').toEqual([]);
    await page.getByRole('button', { name: 'Back to live' }).click();
    await seen('satisfied');
  });
  it('records what the server says, and shows all of it again', async () => {
    await page.goto(stub.url('/replay'));
    await page.getByRole('button', { name: 'Record', exact: true }).click();
    await until('a whole round', () => stub.asked.some((path) => path.startsWith('shards/shard-2/trends')));
    await page.getByRole('button', { name: 'Stop' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: /^Save/ }).click(),
    ]);
    const file = join(ARTEFACTS, 'recording.jsonl');
    await download.saveAs(file);
    stub.override = () => ({ status: 502, body: { error: 'gone' } });
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen('Back to live');
    for (const [link, text] of [
      ['Needs', 'satisfied'],
      ['Overview', '$184.32/h'],
      ['Topology', 'coordinator-1'],
      ['FinOps', 'Pinned work on Spot'],
      ['Machines', 'm-00000'],
      ['Shard capacity', 'in-process fake'],
      ['Clusters', 'ml-train'],
    ] as const) {
      await page.getByRole('link', { name: link, exact: true }).first().click();
      await seen(text);
    }
  });
  it('says which shards are recorded, and what could not be had', async () => {
    stub.fleet = new Fleet({ ...SMALL, shards: 12 });
    stub.override = (path, search) =>
      path === 'needs' && search.get('shard') === 'shard-1'
        ? { status: 502, body: { error: 'shard-1: no answer in time' } }
        : undefined;
    await page.goto(stub.url('/replay'));
    await page.getByRole('button', { name: 'Record', exact: true }).click();
    await seen('Of 12 shards, the first 8 are recorded');
    await seen('something could not be had in 1 of 1 round');
    await seen('shard-1: no answer in time');
    await until('a whole round', () => stub.asked.some((path) => path.startsWith('shards/shard-7/trends')));
    await page.getByRole('button', { name: 'Stop' }).click();
    // What came after the failure does not hide it.
    await seen('shard-1: no answer in time');
    expect(stub.asked.some((path) => path.includes('shard-8'))).toBe(false);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: /^Save/ }).click(),
    ]);
    const file = join(ARTEFACTS, 'failing.jsonl');
    await download.saveAs(file);
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen(/needs\?.*shard=shard-1 failed 1 of 1 times while this was recorded/);
    await page.getByRole('link', { name: 'Needs', exact: true }).first().click();
    await page.locator('main select').first().selectOption('shard-1');
    await page.locator('[data-state="failed"]').getByText('shard-1: no answer in time').waitFor();
  });
  it('records once, however often it is begun', async () => {
    await page.clock.install();
    await page.goto(stub.url('/replay'));
    const asked = (): number => stub.asked.filter((path) => path.startsWith('shards/shard-2/trends')).length;
    const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
    await press('Record');
    await press('Stop');
    await press('Record');
    await until('a whole round', () => asked() === 1);
    await page.clock.runFor(500);
    expect(asked()).toBe(1);
    await page.clock.runFor(10_000);
    await until('the next round', () => asked() === 2);
    await press('Stop');
    await page.clock.runFor(30_000);
    expect(asked()).toBe(2);
  });
  it('shows tens of thousands of recorded needs', async () => {
    const fleet = new Fleet(FULL);
    const file = join(ARTEFACTS, 'full.jsonl');
    const answers: [string, object][] = [
      ['topology', new Fleet(SMALL).topology()],
      ['needs?limit=20000&shard=shard-0', fleet.needs('shard-0', undefined, 20_000)],
    ];
    writeFileSync(
      file,
      answers.map(([recorded, body]) => JSON.stringify({ recorded, at: Date.now(), body })).join('\n'),
    );
    await page.goto(stub.url('/replay'));
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen('Back to live');
    await page.getByRole('link', { name: 'Needs', exact: true }).first().click();
    await until('the choice is in the URL', () => query('cluster') !== null);
    await page.locator('main select').nth(1).selectOption('*');
    await seen('20,000 shown');
  });
  it('says what it cannot read', async () => {
    const file = join(ARTEFACTS, 'holiday.jsonl');
    writeFileSync(file, 'not a log');
    await page.goto(stub.url('/replay'));
    await page.locator('input[type=file]').first().setInputFiles(file);
    await page
      .getByRole('alert')
      .getByText(/nothing to replay in holiday.jsonl/)
      .waitFor();
  });
});
