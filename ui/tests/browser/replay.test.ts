// Recordings: what was made, and what is shown of it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ARTEFACTS } from './browser';
import { page, seen, stub, until } from './session';

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
