// What the app does, whichever screen: keys, links, streams, ages, replays.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { accessible } from './axe';
import { ARTEFACTS, launch, open } from './browser';
import { Fleet, FULL } from './stub/fleet';
import { Stub } from './stub/server';

let browser: Browser;
let page: Page;
let errors: string[];
const stub = new Stub();

beforeAll(async () => {
  await stub.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await stub.stop();
});
beforeEach(async () => {
  ({ page, errors } = await open(browser));
});
afterEach(async () => {
  await page.close();
  stub.reset();
  expect(errors).toEqual([]);
});

const seen = (text: string | RegExp): Promise<void> =>
  page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 10_000 });
const query = (name: string): string | null => new URL(page.url()).searchParams.get(name);

/** Waits until a condition of the test itself holds. */
async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function hide(hidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'visibilityState', {
      configurable: true,
      get: () => (hidden ? 'hidden' : 'visible'),
    });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
}

describe('what everybody must know', () => {
  it('an unauthenticated transport has a badge on every screen', async () => {
    stub.override = (path) => (path === 'config' ? { body: { ...stub.fleet.config(), plaintext: true } } : undefined);
    for (const path of ['/', '/needs', '/replay']) {
      await page.goto(stub.url(path));
      await seen('unauthenticated transport');
    }
  });
  it('a dashboard open to the network has a banner', async () => {
    stub.override = (path) =>
      path === 'config'
        ? { body: { ...stub.fleet.config(), openToNetwork: true, authMode: 'none', viewer: null } }
        : undefined;
    await page.goto(stub.url('/'));
    await page.getByRole('alert').getByText('--auth none').waitFor();
  });
  it('neither is there otherwise', async () => {
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    expect(await page.getByText('unauthenticated transport').count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(0);
  });
  it('an identity that is missing can sign in and come back', async () => {
    stub.override = (path) =>
      path === 'config' ? undefined : { status: 401, body: { error: 'no identity', login: 'auth/login' } };
    await page.goto(stub.url('/needs?shard=shard-0'));
    const link = page.getByRole('link', { name: 'Sign in' }).first();
    expect(await link.getAttribute('href')).toBe('auth/login?return=needs%3Fshard%3Dshard-0');
  });
});

describe('keyboard', () => {
  it('goes to screens by letter', async () => {
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    for (const [letter, title] of [
      ['n', 'Needs'],
      ['m', 'Machines'],
      ['f', 'FinOps'],
      ['t', 'Topology'],
      ['o', 'Overview'],
    ] as const) {
      await page.keyboard.press('g');
      await page.keyboard.press(letter);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
    }
  });
  it('searches with a slash, and leaves with Esc', async () => {
    await page.goto(stub.url('/shards'));
    await seen('shard-1');
    await page.keyboard.press('/');
    await page.keyboard.type('shard-2');
    await page.getByText('shard-1').waitFor({ state: 'detached' });
    expect(query('search')).toBe('shard-2');
    await page.keyboard.press('Escape');
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('BODY');
  });
  it('walks through tables and opens rows', async () => {
    await page.goto(stub.url('/machines'));
    await seen('m-00000');
    await page.locator('tr[tabindex="0"]').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'End', 'Home', 'ArrowDown']) await page.keyboard.press(key);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Machine m-00001' }).waitFor();
    expect(query('machine')).toBe('m-00001');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.index)).toBe('1');
  });
  it('shows where the focus is', async () => {
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement as Element).outlineStyle);
    expect(outline).toBe('solid');
  });
});

describe('links', () => {
  it('carry sort, filters and time range, and reproduce the view', async () => {
    await page.goto(stub.url('/shards'));
    await page.getByRole('button', { name: 'Cycle p99' }).click();
    expect(query('sort')).toBe('-cycle');
    await page.goto(stub.url('/shards?sort=-cycle'));
    await seen('1.4 s');
    expect(await page.locator('tbody tr').first().innerText()).toContain('shard-1');
    expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending');

    await page.goto(stub.url('/?range=6h'));
    await until('the range is asked for', () => stub.asked.includes('fleet/actions?duration=6h&step=3m'));
    await page.getByRole('button', { name: '24h' }).click();
    expect(query('range')).toBe('24h');
  });
  it('preselect the first shard and the cluster with the most unmet needs', async () => {
    await page.goto(stub.url('/needs'));
    await seen('satisfied');
    await until('the choice is in the URL', () => query('cluster') !== null);
    const unmet = new Map<string, number>();
    for (const need of stub.fleet.needs('shard-0', undefined, 1000).needs)
      if (!need.satisfied) unmet.set(need.clusterId, (unmet.get(need.clusterId) ?? 0) + 1);
    const most = [...unmet].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0]?.[0];
    expect([query('shard'), query('cluster')]).toEqual(['shard-0', most]);
  });
  it('that name a cluster find its shard', async () => {
    stub.override = (path, search) =>
      path === 'sessions'
        ? {
            body: {
              ...stub.fleet.sessions('x'),
              sessions: search.get('shard') === 'shard-2' ? [{ clusterId: 'batch' }] : [],
            },
          }
        : undefined;
    await page.goto(stub.url('/needs?cluster=batch'));
    await seen('shard-2 · batch');
    expect(stub.asked.filter((path) => path.startsWith('needs?')).every((path) => path.includes('shard-2'))).toBe(true);
  });
  it('filter needs by a click on a reason', async () => {
    await page.goto(stub.url('/needs?cluster=*'));
    await page.getByRole('button', { name: /no matching supply/ }).click();
    expect([query('status'), query('reason')]).toEqual(['unmet', 'NO_MATCHING_SUPPLY']);
    await until(
      'only those are left',
      async () => (await page.locator('tbody .chip', { hasText: 'satisfied' }).count()) === 0,
    );
    await page.goBack();
    await seen('46 shown');
  });
  it('open the drawer of one need', async () => {
    const need = stub.fleet.need(6);
    const url = `/needs?cluster=*&need=${encodeURIComponent(need.profileFingerprint)}&of=${need.clusterId}&group=${encodeURIComponent(need.need.group)}`;
    await page.goto(stub.url(url));
    const drawer = page.getByRole('dialog');
    for (const text of [
      'What to do',
      'machines, not pods',
      'Estimate',
      'in use by others',
      'Who is ahead',
      'Co-location',
      'rack-17',
      'rank 23 of 46',
      'tried again every 32 cycles',
      'co-location: all machines share one value',
      'clusters that you may not see',
    ]) {
      if (text.startsWith('tried') && !need.acquisitionParked) continue;
      await drawer.getByText(text).first().waitFor();
    }
  });
  it('without an explanation say what is approximate', async () => {
    stub.override = (path) =>
      path === 'explain' ? { status: 502, body: { error: 'this shard is older than ExplainNeed' } } : undefined;
    await page.goto(stub.url('/needs?cluster=*'));
    await page
      .locator('tr.open')
      .nth(4)
      .click({ position: { x: 620, y: 10 } });
    await seen('approximate: higher needs of an overlapping shape');
    await seen('this shard is older than ExplainNeed');
  });
  it('work under any base path, deep ones too', async () => {
    stub.base = '/tools/fleet/';
    await page.goto(stub.url('/shards/shard-1?range=6h'));
    await page.getByRole('heading', { level: 1, name: 'shard-1' }).waitFor();
    await seen('4.1 ms');
    await page.getByRole('link', { name: 'Needs' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'Needs' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/tools/fleet/needs');
    await seen('satisfied');
  });
  it('to nowhere say so', async () => {
    await page.goto(stub.url('/nonsense'));
    await seen('No such screen');
  });
});

describe('freshness', () => {
  it('news arrive by stream and are not polled meanwhile', async () => {
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('46 shown');
    await until('a stream with the topics', () => stub.streams.size === 1);
    expect(stub.asked.some((path) => path.includes('topics=needs%3Ashard-0%2Ctopology'))).toBe(true);
    await seen('live');
    const before = stub.asked.filter((path) => path.startsWith('needs')).length;
    stub.tell('needs:shard-0', { shard: 'shard-0', cycle: 18_232 });
    await until('asked again', () => stub.asked.filter((path) => path.startsWith('needs')).length === before + 1);
  });
  it('decisions tick', async () => {
    await page.goto(stub.url('/'));
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    stub.tell('decisions', { ...stub.fleet.decision(0), shard: 'shard-9', sequence: '77', machineId: 'm-fresh' });
    await seen('m-fresh');
    for (const shard of ['shard-0', 'shard-2']) stub.tell('summary', stub.fleet.summary(shard));
    await seen('paused: shard-2');
  });
  it('without a stream it polls', async () => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('46 shown');
    await seen('polling');
    const before = stub.asked.filter((path) => path.startsWith('needs')).length;
    await page.clock.runFor(11_000);
    await until('asked again', () => stub.asked.filter((path) => path.startsWith('needs')).length > before);
  });
  it('a hidden tab stops both, and catches up', async () => {
    await page.clock.install();
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    await page.clock.runFor(500);
    await until('a stream', () => stub.streams.size === 1);
    await hide(true);
    await page.clock.runFor(500);
    await until('no stream', () => stub.streams.size === 0);
    const before = stub.asked.length;
    await page.clock.runFor(120_000);
    expect(stub.asked.slice(before)).toEqual([]);
    await hide(false);
    await page.clock.runFor(500);
    await until('asked again', () => stub.asked.slice(before).includes('fleet/overview'));
    await until('a stream again', () => stub.streams.size === 1);
  });
  it.each([
    '/',
    '/shards',
    '/shards/shard-0',
    '/shard-reports',
    '/topology',
    '/clusters',
    '/clusters/prod-eu',
    '/available-capacity',
    '/needs?cluster=*',
    '/finops',
    '/machines',
    '/decisions',
  ])('what nobody refreshes turns stale: %s', async (path) => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url(path));
    await page.locator('[data-state="full"]').first().waitFor();
    expect(await page.locator('.stale').count()).toBe(0);
    stub.override = () => 'hang';
    await page.clock.runFor(70_000);
    await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
  });
  it('what the stream carries does not turn stale while it is alive', async () => {
    await page.clock.install();
    await page.goto(stub.url('/decisions'));
    await seen('create for');
    await until('a stream', () => stub.streams.size === 1);
    for (let passed = 0; passed < 60; passed += 10) {
      await page.clock.runFor(10_000);
      stub.tell('heartbeat', { nowUnixNanos: Date.now() * 1e6 });
      await page.waitForTimeout(50);
    }
    expect(await page.locator('.stale').count()).toBe(0);
    stub.streaming = false;
    stub.override = () => 'hang';
    for (const stream of stub.streams) stream.destroy();
    await page.clock.runFor(70_000);
    await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
  });
  it('keeps what it knew when a refresh fails, and says so', async () => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url('/shards'));
    await seen('shard-1');
    stub.override = (path) =>
      path === 'shards' ? { status: 502, body: { error: 'prometheus timed out after 5 s' } } : undefined;
    await page.clock.runFor(16_000);
    await page.locator('[data-state="partial"]').waitFor();
    await seen(/prometheus timed out after 5 s/);
    await seen('shard-1');
  });
});

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

describe('ways around', () => {
  it('a plot is a table for whoever prefers one', async () => {
    await page.goto(stub.url('/'));
    await page.getByRole('img', { name: /Actions per second by kind/ }).waitFor();
    await page.getByRole('button', { name: 'Table', exact: true }).click();
    const table = page.getByRole('table', { name: 'Actions per second by kind' });
    await table.getByRole('columnheader', { name: 'Provision' }).waitFor();
    await accessible(page, 'plot as a table');
  });
  it('the search box goes to screens and machines', async () => {
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    await page.keyboard.press('/');
    await page.keyboard.type('m-0001');
    await page.getByRole('option', { name: /machines whose id starts so/ }).waitFor();
    await accessible(page, 'search box');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
    expect(query('prefix')).toBe('m-0001');
  });
  it('more needs than can be had at once are had by cluster', async () => {
    stub.override = (path, search) => {
      if (path !== 'needs') return undefined;
      const { body } = stub.plain(path, search) as { body: { needs: unknown[]; totalNeeds: number } };
      return { body: search.get('cluster') === null ? { ...body, totalNeeds: 90_000 } : body };
    };
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('first 46 of 90,000');
    await page.locator('main select').nth(1).selectOption('prod-us');
    await until('the server picks', () => stub.asked.some((path) => path.startsWith('needs?cluster=prod-us')));
    await page.getByText('first 46 of 90,000').waitFor({ state: 'detached' });
  });
});

describe('themes', () => {
  it('follow the system, and the viewer, who is remembered', async () => {
    const theme = (): Promise<string | undefined> => page.evaluate(() => document.documentElement.dataset.theme);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    expect(await theme()).toBe('dark');
    await page.getByRole('button', { name: 'Theme: as the system' }).click();
    expect(await theme()).toBe('light');
    await page.reload();
    await seen('$184.32/h');
    expect(await theme()).toBe('light');
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
