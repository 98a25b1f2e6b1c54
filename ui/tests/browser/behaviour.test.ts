// What the app does, whichever screen: keys, links, themes.

import { describe, expect, it } from 'vitest';
import { accessible } from './axe';
import { page, query, seen, stub, until } from './session';

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
    expect(await link.getAttribute('href')).toBe('auth/login?return=%2Fneeds%3Fshard%3Dshard-0');
  });
  it('a session that ends offers the same over what was known', async () => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url('/shards'));
    await seen('shard-1');
    stub.override = () => ({ status: 401, body: { error: 'no identity', login: 'auth/login' } });
    await page.clock.runFor(16_000);
    const link = page.locator('[data-state="partial"]').getByRole('link', { name: 'Sign in' });
    await link.waitFor();
    // What is filtered meanwhile is part of the view.
    await page.getByRole('button', { name: 'Cycle p99' }).click();
    await until(
      'it leads back to the view',
      async () => (await link.getAttribute('href')) === 'auth/login?return=%2Fshards%3Fsort%3D-cycle',
    );
    await seen('shard-1');
    await accessible(page, 'session that ended');
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
    await page.getByText(/^first 46 of 90,000$/).waitFor({ state: 'detached' });
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
