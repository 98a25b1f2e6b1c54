// Every screen of the dashboard on a fleet with more demand than machines.

import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { accessible } from '../browser/axe';
import { ARTEFACTS, launch } from '../browser/browser';
import { Hand } from './demo';
import { broken, firstPaint, openLive, seen } from './page';

const { guide, dashboard } = inject('where');
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
  await new Hand(guide).pressed();
});
afterAll(() => browser?.close());
beforeEach(async () => {
  ({ page, errors } = await openLive(browser));
});
afterEach(async () => {
  await page.close();
  expect(errors).toEqual([]);
});

const at = (path: string): string => dashboard + path;
const query = (name: string): string | null => new URL(page.url()).searchParams.get(name);
const menu = (name: string): Promise<void> => page.getByRole('link', { name, exact: true }).first().click();

describe('screens', () => {
  it.each<[string, string, (string | RegExp)[]]>([
    ['overview', '/', ['Outranked', /^\$\d+\.\d\d\/h$/, 'live', 'Bootstrap', '152']],
    ['shards', '/shards', ['shard-0', 'shard-1']],
    ['shard', '/shards/shard-0', ['phase1', 'cluster-a', 'connected', 'cycle p99', 'configured']],
    ['shard-reports', '/shard-reports', ['sim.8x32', 'east-a', /escalated|cycle/]],
    ['topology', '/topology', ['coordinator-0', 'leader', 'follower', /shard-1/]],
    ['needs', '/needs?shard=shard-0&cluster=*', ['Outranked', 'satisfied', /contested/, /cut-line/, /short \d+/]],
    ['clusters', '/clusters', ['cluster-a', 'cluster-b', 'cluster-c']],
    ['available-capacity', '/available-capacity', ['a hint, not a promise', 'cluster-a', /^none$/]],
    ['finops', '/finops', [/^\$\d+\.\d\d\/h$/, 'bare-metal', 'prices as providers declare them', 'Provision']],
    ['machines', '/machines?shard=shard-0', ['76 of 76 machines', 'configured', 'cluster-a', '$0.38/h']],
    ['decisions', '/decisions?shard=shard-0', ['Provision', 'success', /nothing idle matched/]],
    ['replay', '/replay', ['Choose files', 'Record']],
    ['whatif', '/whatif', ['Ask the engine']],
  ])('%s', async (name, path, texts) => {
    expect(await firstPaint(page, at(path)), 'first paint').toBeLessThan(1000);
    for (const text of texts) await seen(page, text);
    // Each panel has its answer, and none says that it has none.
    for (const state of ['loading', 'failed', 'missing', 'rebuilding'])
      await page.waitForFunction((state) => document.querySelector(`[data-state="${state}"]`) === null, state);
    expect(await page.locator('.stale').count(), 'nothing is old').toBe(0);
    expect(await broken(page), 'no broken value').toBe(0);
    await accessible(page, `live ${name}`);
  });

  it('a cluster says which of its requests wait, and why, and leads to its needs', async () => {
    await page.goto(at('/clusters'));
    await page.getByRole('link', { name: 'cluster-c', exact: true }).click();
    // The operator says it once it has lasted, and the screen asks again by itself.
    await seen(page, 'PriorityStarved', 60);
    await seen(page, /not satisfied/);
    await accessible(page, 'live cluster');
    // Its shard is not the first one.
    await page.getByRole('link', { name: 'Its needs' }).click();
    await seen(page, 'Outranked');
    await seen(page, 'shard-1 · cluster-c');
  });
});

describe('needs', () => {
  it('preselects, filters, and explains one need to the end', async () => {
    await page.goto(at('/needs'));
    await page.waitForFunction(() => location.search.includes('cluster='));
    expect([query('shard'), query('cluster')]).toEqual(['shard-0', 'cluster-a']);
    await page.getByRole('button', { name: /outranked/ }).click();
    expect([query('status'), query('reason')]).toEqual(['unmet', 'PRIORITY_STARVED']);
    await page.locator('tbody .open').first().click();
    const drawer = page.getByRole('dialog', { name: 'Need of cluster-a' });
    for (const text of [
      'What to do',
      'PRIORITY_STARVED',
      'machines, not pods',
      'exact, over the whole shard',
      'match the requirements',
      'needs that took matching machines this cycle',
      'instance-type = sim.8x32',
      /^rank \d+ of 4$/,
      'not parked',
    ])
      await drawer.getByText(text).first().waitFor();
    await drawer
      .getByRole('row', { name: /cluster-b/ })
      .first()
      .waitFor();
    await accessible(page, 'live explain drawer');
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await drawer.waitFor();
    await drawer.getByRole('link', { name: 'its machines' }).click();
    await page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
    await seen(page, 'cluster-a');
    expect(await page.locator('tbody').getByText('cluster-b').count()).toBe(0);
  });

  it('follow the cycles of the shard by themselves', async () => {
    await page.goto(at('/needs?shard=shard-0&cluster=*'));
    await seen(page, 'live');
    const first = await page
      .getByText(/^cycle [\d,]+/)
      .first()
      .innerText();
    await page.waitForFunction(
      (first) => [...document.querySelectorAll('main *')].every((node) => node.textContent !== first),
      first,
    );
  });
});

describe('what if', () => {
  it('64 GPUs in one rack are told from 64 that do not fit', async () => {
    await page.goto(at('/whatif?shard=shard-1'));
    await page.getByRole('button', { name: 'Ask the engine' }).click();
    await seen(page, 'fits');
    await seen(page, /^harbor-g-rack-\d$/);
    await accessible(page, 'live what-if fits');
    await page.getByRole('textbox', { name: /Total of/ }).fill('6400');
    await page.getByRole('button', { name: 'Ask the engine' }).click();
    await seen(page, 'Still missing');
    // The other shard has none at all.
    await page.goto(
      at(
        `/whatif?shard=shard-0&cluster=cluster-a&need=${encodeURIComponent('{"aggregateResources":{"nvidia.com/gpu":"8"},"requirements":[{"key":"node.kubernetes.io/instance-type","operator":"In","values":["sim.gpu8"]}]}')}`,
      ),
    );
    await seen(page, /no machine of this shape/);
  });

  it('the gate says in its own words what is wrong', async () => {
    const need = encodeURIComponent('{"aggregateResources":{"cpu":"-1"}}');
    await page.goto(at(`/whatif?shard=shard-0&cluster=cluster-a&need=${need}`));
    await page.locator('[data-state="refused"]').waitFor();
  });
});

describe('machines and decisions', () => {
  it('one machine with its transitions and their causes', async () => {
    await page.goto(at('/machines?shard=shard-0&state=configured&prefix=alpha-ondemand'));
    await page.locator('tbody .open, tbody a, tbody button').first().click();
    const drawer = page.getByRole('dialog', { name: /^Machine alpha-ondemand/ });
    for (const text of ['creating', 'configuring', '$0.38/h', 'sim.8x32'])
      await drawer.getByText(text).first().waitFor();
    await accessible(page, 'live machine');
  });

  it('decisions are filtered by the server and leave as JSON lines', async () => {
    await page.goto(at('/decisions?shard=shard-0&kind=Provision'));
    await seen(page, /nothing idle matched/);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export JSON lines' }).click(),
    ]);
    const file = join(ARTEFACTS, 'live-decisions.jsonl');
    await download.saveAs(file);
    // The export replays.
    await page.goto(at('/replay'));
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen(page, 'Back to live');
    await menu('Decisions');
    await seen(page, /nothing idle matched/);
    expect(await page.locator('tbody').getByText('Reclaim').count()).toBe(0);
  });
});

describe('money', () => {
  it('of one shard by cluster and class, with its flags', async () => {
    await page.goto(at('/finops'));
    await page.getByRole('button', { name: 'Read its machines' }).click();
    await seen(page, 'cluster-a');
    await page.getByRole('button', { name: 'by class' }).click();
    for (const text of ['service', 'batch']) await seen(page, text);
    await accessible(page, 'live finops of a shard');
  });
});

describe('replay', () => {
  it('of what was recorded from the live fleet', async () => {
    await page.goto(at('/replay'));
    const round = page.waitForResponse((response) => response.url().includes('/api/shards/shard-1/trends'));
    await page.getByRole('button', { name: 'Record', exact: true }).click();
    await round;
    await page.getByRole('button', { name: 'Stop' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: /^Save/ }).click(),
    ]);
    const file = join(ARTEFACTS, 'live-recording.jsonl');
    await download.saveAs(file);
    await page.locator('input[type=file]').first().setInputFiles(file);
    await seen(page, 'Back to live');
    let asked = 0;
    page.on('request', (request) => (asked += request.url().includes('/api/') ? 1 : 0));
    for (const [link, text] of [
      ['Needs', 'Outranked'],
      ['Overview', /^\$\d+\.\d\d\/h$/],
      ['Topology', 'coordinator-0'],
      ['Machines', '76 of 76 machines'],
      ['Shard capacity', 'sim.8x32'],
      ['FinOps', 'bare-metal'],
    ] as const) {
      await menu(link);
      await seen(page, text);
      await page.screenshot({ path: `${ARTEFACTS}/live-replay-${link.toLowerCase().replaceAll(' ', '-')}.png` });
    }
    expect(asked, 'nothing is asked of the server meanwhile').toBe(0);
  });
});
