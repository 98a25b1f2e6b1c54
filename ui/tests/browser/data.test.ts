// Many rows, filters, questions to the engine, and what leaves as a file.

import { describe, expect, it } from 'vitest';
import { page, query, seen, stub } from './session';
import { Fleet, FULL } from './stub/fleet';

describe('filters', () => {
  it('that fail do not leave the answer to another question standing', async () => {
    await page.goto(stub.url('/machines?shard=shard-0'));
    await seen('m-00000');
    stub.override = (path, query) =>
      path === 'machines' && query.get('state') === 'idle'
        ? { status: 502, body: { error: 'shard-0 timed out' } }
        : undefined;
    await page.getByLabel('State').selectOption('idle');
    await page.locator('[data-state="failed"]').getByText('shard-0 timed out').waitFor();
    expect(await page.getByText('m-00000').count()).toBe(0);
  });
});

describe('many rows', () => {
  it('are virtual, and reachable by keyboard', async () => {
    stub.fleet = new Fleet(FULL);
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('20,000 shown');
    const table = page.locator('table[aria-rowcount]').first();
    expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(20_000);
    expect(await page.locator('tbody tr').count()).toBeLessThan(80);
    await page.locator('tr[tabindex="0"]').focus();
    await page.keyboard.press('End');
    const last = Number(await table.getAttribute('aria-rowcount'));
    await page.locator(`tr[aria-rowindex="${last}"]`).waitFor();
    expect(await page.locator('tbody tr').count()).toBeLessThan(80);
  });
  it('up to 150 are all there', async () => {
    await page.goto(stub.url('/machines'));
    await seen('120 of 120 machines');
    expect(await page.locator('tbody tr').count()).toBe(120);
    expect(await page.locator('table').getAttribute('data-virtual')).toBe('false');
  });
  it('come page by page where the server pages', async () => {
    stub.fleet = new Fleet(FULL);
    await page.goto(stub.url('/machines'));
    await seen('500 of 20,000 machines');
    await page.getByRole('button', { name: 'Load more' }).click();
    await seen('1,000 of 20,000 machines');
  });
});

describe('what if', () => {
  it('asks the engine and keeps the question in the URL', async () => {
    await page.goto(stub.url('/whatif'));
    await seen('Nothing asked yet');
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[data-search]')?.value !== '');
    await page.getByRole('button', { name: 'Ask the engine' }).click();
    await seen('after preempting lower work');
    expect(JSON.parse(query('need') ?? '')).toMatchObject({ aggregateResources: { 'nvidia.com/gpu': '64' } });
  });
  it('says what is wrong before it asks, and what the gate says after', async () => {
    await page.goto(stub.url('/whatif'));
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[data-search]')?.value !== '');
    const total = page.getByRole('textbox', { name: /Total of/ });
    await total.fill('lots');
    await page.getByRole('button', { name: 'Ask the engine' }).click();
    await seen(/must be a quantity above 0/);
    stub.override = (path) =>
      path === 'whatif' ? { status: 400, body: { error: 'need: priority out of range' } } : undefined;
    await total.fill('64');
    await page.getByRole('button', { name: 'Ask the engine' }).click();
    await page.locator('[data-state="refused"]').getByText('need: priority out of range').waitFor();
  });
});

describe('decisions', () => {
  it('leave as JSON lines', async () => {
    await page.goto(stub.url('/decisions?kind=Provision'));
    await seen('create for');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export JSON lines' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('decisions-shard-0.jsonl');
    expect(stub.asked.some((path) => path.includes('after=-1') && path.includes('kind=Provision'))).toBe(true);
  });
});
