// That the app never tells more than it knows: unknown is not zero, another shard's answer is not
// this one's, and what failed is tried again.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type {
  AvailableCapacity,
  Decisions,
  Finops,
  FinopsShard,
  Needs,
  ShardReports,
  Shards,
  Topology,
} from '../../src/api/types';
import { formatQuery } from '../../src/route/url';
import { ARTEFACTS } from './browser';
import { browser, page, query, seen, stub, until } from './session';
import { Fleet, FULL } from './stub/fleet';
import type { Answer } from './stub/server';

const gone = (text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor({ state: 'detached' });
const shown = (text: string | RegExp): Promise<number> => page.getByText(text).filter({ visible: true }).count();
const asked = (path: string): number => stub.asked.filter((one) => one.startsWith(path)).length;

/** Answers of one path with some fields replaced. */
function patch<T>(path: string, change: (body: T) => Partial<T>): void {
  stub.override = (at, search) => {
    if (at !== path) return undefined;
    const body = stub.plain(at, search).body as T;
    return { body: { ...body, ...change(body) } };
  };
}

describe('unknown is not zero', () => {
  it('in the share of applies that fail', async () => {
    patch<Topology>('topology', ({ coordinator }) => ({ coordinator: { ...coordinator, applyErrorRatePerSec: null } }));
    await page.goto(stub.url('/topology'));
    await seen('errors —');
  });
  it.each([null, {}])('in transfers of which nobody tells: %s', async (transfersByPhase) => {
    patch<Topology>('topology', ({ coordinator }) => ({ coordinator: { ...coordinator, transfersByPhase } }));
    await page.goto(stub.url('/topology'));
    await seen('Transfers in flight');
    const tile = page.locator('.tile', { hasText: 'Transfers in flight' });
    await tile.getByText('—', { exact: true }).waitFor();
    await tile.getByText('not known').waitFor();
  });
  it('in whether a shard lives', async () => {
    patch<Shards>('shards', ({ shards }) => ({ shards: shards.map((one) => ({ ...one, paused: false, live: null })) }));
    await page.goto(stub.url('/shards'));
    await seen('unknown');
    expect(await shown('no cycle in 2 min')).toBe(0);
  });
  it('in a report without a summary', async () => {
    patch<ShardReports>('shard-reports', ({ reports }) => ({
      reports: reports.map((one) => ({ ...one, summary: null })),
      silentShards: Array.from({ length: 25 }, (_, index) => `quiet-${index}`),
    }));
    await page.goto(stub.url('/shard-reports'));
    await seen('Not known.');
    await seen(/quiet-19 and 5 more/);
    expect(await shown('No machines.')).toBe(0);
  });
  it('in a matrix and in demand that nobody knows', async () => {
    patch<Finops>('finops/snapshot', (body) => ({
      configured: (body.configured ?? []).map((row) => row.map(() => null)),
      demandByBucket: body.buckets.map(() => 0),
      supplyByBucket: null,
    }));
    await page.goto(stub.url('/finops'));
    await seen('Supply is not known.');
    expect(await shown('No machine is configured.')).toBe(0);
    expect(await shown('No demand and no configured machine.')).toBe(0);
  });
  it('in savings of nothing compared', async () => {
    patch('finops/savings', () => ({ compared: 0, savedPerHour: 0, rows: [] }));
    await page.goto(stub.url('/finops?shard=shard-0'));
    await seen('over 0 of 240 decisions');
    expect(await page.locator('b', { hasText: '$0.00/h' }).count()).toBe(0);
  });
  it('in savings of which not all are listed', async () => {
    patch('finops/savings', () => ({ compared: 9000 }));
    await page.goto(stub.url('/finops?shard=shard-0'));
    await seen(/^newest \d+ shown$/);
  });
  it('in the money of a shard that is stuck in a cycle', async () => {
    patch('finops/shard', () => ({ computedAtUnixNanos: (Date.now() - 40_000) * 1e6 }));
    await page.goto(stub.url('/finops?shard=shard-0'));
    const money = page.getByRole('region', { name: 'Money by cluster' });
    await money.locator('.stale', { hasText: 'stale' }).waitFor();
    const asked = (): number => stub.asked.filter((path) => /^finops\/(shard|savings)/.test(path)).length;
    const before = asked();
    patch('finops/shard', () => ({ computedAtUnixNanos: Date.now() * 1e6 }));
    await page.getByRole('button', { name: 'Read again' }).click();
    await until('both are asked again', () => asked() === before + 2);
    await money.locator('.stale').waitFor({ state: 'detached' });
  });
  it.each([
    [200_000, /^first 200,000 machines$/, 'Beyond the first 200,000 machines'],
    [null, /^first machines$/, 'Beyond the first machines'],
  ])('in the flags of machines that were not looked at: first %s', async (machines, chip, beyond) => {
    patch<FinopsShard>('finops/shard', () => ({ truncated: true, machines, rows: [], redFlags: [] }));
    await page.goto(stub.url('/finops?shard=shard-0'));
    const flags = page.getByRole('region', { name: 'Red flags of shard-0' });
    await flags.getByText('not checked').waitFor();
    await flags.getByText(beyond).waitFor();
    await seen(chip);
    for (const nothing of [/No red flag is up in this shard/, /This shard has no machines/])
      expect(await shown(nothing), String(nothing)).toBe(0);
  });
  it('in the machines of a viewer who may see none', async () => {
    patch<FinopsShard>('finops/shard', () => ({ machines: null, rows: [], redFlags: [] }));
    await page.goto(stub.url('/finops?shard=shard-0'));
    await seen('This shard has no machines that you may see.');
  });
  it('in what a bar of money says of its parts', async () => {
    patch<Finops>('finops/snapshot', () => ({ dollarsPerHour: { spot: { configured: 0.3 } } }));
    await page.goto(stub.url('/finops'));
    await page.locator('[title="spot: $0.30/h"]').waitFor();
  });
  it('in the hints of clusters that were not asked', async () => {
    patch<AvailableCapacity>('available-capacity', () => ({ clusters: [], total: 300, next: 'prod-eu' }));
    await page.goto(stub.url('/available-capacity'));
    await seen('None of these clusters has a hint.');
    expect(await shown('No cluster has a hint.')).toBe(0);
  });
  it('in a list that was cut short', async () => {
    patch('clusters/prod-eu', () => ({ requestsTruncated: true }));
    await page.goto(stub.url('/clusters/prod-eu'));
    await seen('at least 4 not satisfied');
  });
});

describe('an answer', () => {
  it('of one shard is not shown as that of another', async () => {
    await page.goto(stub.url('/machines?shard=shard-0'));
    await seen('m-00000');
    stub.override = (path, search) => (path === 'machines' && search.get('shard') === 'shard-1' ? 'hang' : undefined);
    await page.locator('main select').first().selectOption('shard-1');
    await page.locator('[data-state="loading"]').first().waitFor();
    expect(await shown('m-00000')).toBe(0);
  });
  it('that failed is asked for again, also while the stream is open', async () => {
    await page.clock.install();
    stub.override = (path) =>
      path === 'decisions' ? { status: 502, body: { error: 'shard-0 timed out' } } : undefined;
    await page.goto(stub.url('/decisions'));
    await seen('shard-0 timed out');
    await page.clock.runFor(500);
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    stub.override = () => undefined;
    await page.clock.runFor(11_000);
    await seen('create for');
  });
  it.each(['/decisions?shard=shard-0&kind=Preempt', '/', '/machines?shard=shard-0&machine=m-00003'])(
    'that was not read to the end does not say that there is nothing: %s',
    async (path) => {
      await page.clock.install();
      patch<Decisions>('decisions', () => ({ decisions: [], more: true }));
      await page.goto(stub.url(path));
      await seen('not read to the end');
      await seen('None among those that were read.');
      for (const nothing of [/there are none/, 'No decisions yet.', 'None is kept.'])
        expect(await shown(nothing), String(nothing)).toBe(0);
      // The stream tells what is new, and not what was left out.
      await page.clock.runFor(500);
      stub.override = () => undefined;
      await page.clock.runFor(11_000);
      await gone('not read to the end');
    },
  );
  it('whose rest cannot be had is not exported as if it were whole', async () => {
    await page.goto(stub.url('/decisions?shard=shard-0'));
    await seen('create for');
    patch<Decisions>('decisions', ({ next }) => ({ more: true, next }));
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export JSON lines' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('decisions-shard-0.jsonl');
    await seen(/^not read to the end: \d+ saved$/);
  });
  it.each([
    ['/shards/shard-0', 'No cluster has spoken to this shard.', 'sessions', 'prod-eu'],
    ['/decisions?shard=shard-0', /there are none/, 'decisions', 'create for'],
    ['/', 'No decisions yet.', 'decisions', 'create for'],
  ])('of a shard before its first cycle is not that there is nothing: %s', async (path, nothing, route, something) => {
    await page.clock.install();
    let cycle = 0;
    stub.override = (at, search) => {
      const { body } = stub.plain(at, search) as { body: object };
      if (at === route && cycle === 0) return { body: { ...body, [route]: [] } };
      return at === 'machines' ? { body: { ...body, cycle } } : undefined;
    };
    await page.goto(stub.url(path));
    await page.locator('[data-state="rebuilding"]').waitFor();
    expect(await shown(nothing)).toBe(0);
    // It is asked again, although no event of the stream says that a cycle is over.
    await page.clock.runFor(500);
    await until('a stream', () => path.startsWith('/shards') || stub.streams.size === 1);
    cycle = 1;
    await page.clock.runFor(11_000);
    await seen(something);
    expect(await page.locator('[data-state="rebuilding"]').count()).toBe(0);
  });
  it('of one shard that fails does not hide what the others tell', async () => {
    stub.override = (path) =>
      path === 'decisions' ? { status: 502, body: { error: 'shard-0 timed out' } } : undefined;
    await page.goto(stub.url('/'));
    await seen('shard-0 timed out');
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    stub.tell('decisions', { ...stub.fleet.decision(0), shard: 'shard-1', sequence: '77', machineId: 'm-fresh' });
    await seen('m-fresh');
    await seen(/shard-0 timed out/);
  });
  it('does not lose what came while it was on its way', async () => {
    await page.goto(stub.url('/decisions?shard=shard-0'));
    await seen('configure for');
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    let arrive = (): void => {};
    const gate = new Promise<void>((resolve) => (arrive = resolve));
    await page.route(/api\/decisions\?.*kind=Provision/, async (route) => {
      const response = await route.fetch();
      await gate;
      await route.fulfill({ response });
    });
    await page.locator('main select').nth(1).selectOption('Provision');
    await until('it is asked', () => asked('decisions?kind=Provision') === 1);
    const one = stub.fleet.decision(0);
    const fresh = { ...one, kind: 'Provision', shard: 'shard-0', sequence: '9000000000000000000', ofSequence: null };
    stub.tell('decisions', { ...fresh, machineId: 'm-between' });
    await seen('m-between');
    arrive();
    await gone('configure for');
    expect(await shown('m-between')).toBe(1);
  });
  it('from metrics is asked for before it is old', async () => {
    await page.clock.install();
    await page.goto(stub.url('/finops'));
    await seen('$184.32/h');
    await page.getByRole('img', { name: /Dollars per hour/ }).waitFor();
    const before = [asked('finops/trend'), asked('finops/snapshot')] as const;
    await page.clock.runFor(11_000);
    await until('the trend again', () => asked('finops/trend') > before[0]);
    await until('the snapshot again', () => asked('finops/snapshot') > before[1]);
  });
  it('keeps the pages that were loaded', async () => {
    stub.fleet = new Fleet(FULL);
    await page.clock.install();
    await page.goto(stub.url('/machines?shard=shard-0'));
    await seen('500 of 20,000 machines');
    await page.getByRole('button', { name: 'Load more' }).click();
    await seen('1,000 of 20,000 machines');
    const before = asked('machines?');
    await page.clock.runFor(16_000);
    await until('both pages are read again', () => asked('machines?') >= before + 2);
    expect(await shown('1,000 of 20,000 machines')).toBe(1);
  });
  it('whose next page fails says so', async () => {
    stub.override = (path, search) => {
      if (path !== 'topology') return undefined;
      if (search.get('domainsPage')) return { status: 502, body: { error: 'the coordinator timed out' } };
      return { body: { ...stub.fleet.topology(), domainsNext: 'rack-9' } };
    };
    await page.goto(stub.url('/topology'));
    await page.getByRole('button', { name: 'Load more domains' }).click();
    await page.getByRole('alert').getByText('the coordinator timed out').waitFor();
  });
  it('that explains a need says when it is not refreshed', async () => {
    await page.clock.install();
    await page.goto(stub.url('/needs?cluster=*'));
    await page
      .locator('tr.open')
      .nth(4)
      .click({ position: { x: 620, y: 10 } });
    await seen('rank 23 of 46');
    stub.override = (path) => (path === 'explain' ? { status: 502, body: { error: 'shard-0 is gone' } } : undefined);
    await page.clock.runFor(11_000);
    await seen(/The last refresh failed, this is of cycle [\d,]+: shard-0 is gone/);
  });
});

describe('filters', () => {
  it('that match nothing say so', async () => {
    await page.goto(stub.url('/shards?search=nothing-like-it'));
    await seen('Nothing matches.');
  });
  it('typed on one screen are none of the next', async () => {
    await page.clock.install();
    await page.goto(stub.url('/shards'));
    await seen('shard-1');
    // Nothing settles before the screen is left.
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.locator('main [data-search]').fill('shard-2');
    await page.getByRole('link', { name: 'Topology' }).click();
    await page.getByRole('heading', { level: 1, name: 'Topology' }).waitFor();
    await page.clock.runFor(1000);
    await seen('coordinator-1');
    expect(query('search')).toBeNull();
  });
  it('by cluster offer every cluster, however many needs there are', async () => {
    stub.override = (path, search) => {
      if (path !== 'needs') return undefined;
      const { body } = stub.plain(path, search) as { body: object };
      return { body: search.get('cluster') === null ? { ...body, totalNeeds: 90_000 } : body };
    };
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('first 46 of 90,000');
    const choice = page.locator('main select').nth(1);
    await choice.selectOption('prod-us');
    await gone(/^first 46 of 90,000$/);
    await choice.selectOption('prod-eu');
    await seen('shard-0 · prod-eu');
  });
});

describe('of more needs than can be had at once', () => {
  const TOTAL = 90_000;
  /** The first answer has a few of all; those of a cluster can be had, and may be too many, too. */
  function first(few: number, ofCluster?: Answer): void {
    stub.override = (path, search) => {
      if (path !== 'needs') return undefined;
      if (search.get('cluster') !== null) return ofCluster;
      const body = stub.plain(path, search).body as Needs;
      return { body: { ...body, needs: body.needs.slice(0, few), totalNeeds: TOTAL } };
    };
  }
  /** One past the cut. */
  function link(cluster: string, changes: object = {}): string {
    const { clusterId, profileFingerprint, need } = stub.fleet.need(26);
    return stub.url(
      '/needs' +
        formatQuery({
          shard: 'shard-0',
          cluster,
          need: profileFingerprint,
          group: need.group,
          of: clusterId,
          ...changes,
        }),
    );
  }

  it.each(['*', 'prod-us'])('a link finds one past the cut, with cluster=%s', async (cluster) => {
    first(20);
    await page.goto(link(cluster));
    await page.getByRole('dialog', { name: 'Need of prod-us' }).getByText('rank 23 of 46').waitFor();
    expect(await shown(/The need of this link/)).toBe(0);
    expect(query('cluster')).toBe(cluster);
  });
  it('a link to one that is in none says so', async () => {
    first(20);
    await page.goto(link('*', { need: 'gone' }));
    await seen('The need of this link is not among those of the last cycle.');
  });
  it('a link that names no cluster is said to be past the cut', async () => {
    first(20);
    await page.goto(link('*', { of: undefined }));
    await seen('The need of this link is not among the first 20 of 90,000.');
  });
  it('a link into a cluster that is cut, too, says of which part it is', async () => {
    first(20, { body: { ...stub.fleet.needs('shard-0', 'prod-us', 3), totalNeeds: 30_000 } });
    await page.goto(link('*'));
    await seen('The need of this link is not among the first 3 of 30,000 of its cluster.');
  });
  it('a link into a cluster that cannot be had says why', async () => {
    first(20, { status: 502, body: { error: 'shard-0 timed out' } });
    await page.goto(link('*'));
    await seen(/not among the first 20 of 90,000, and those of its cluster cannot be had: shard-0 timed out/);
  });
  it('the clusters and which has the most unmet are told as of a part', async () => {
    first(20);
    await page.goto(stub.url('/needs'));
    await seen('clusters are those of the first 20 of 90,000 needs');
    await until('one is preselected', () => query('cluster') !== null);
    const options = await page.locator('main select').nth(1).locator('option').allInnerTexts();
    expect(options.filter((text) => / \(at least \d+ unmet\)$/.test(text)).length).toBeGreaterThan(1);
    expect(options.filter((text) => / \(\d/.test(text))).toEqual([]);
  });
});

describe('links', () => {
  it('to the needs of a cluster find its shard, also from the needs of another', async () => {
    const homes: Record<string, string> = { 'shard-0': 'prod-eu', 'shard-2': 'batch' };
    stub.override = (path, search) =>
      path === 'sessions'
        ? { body: { ...stub.fleet.sessions('x'), sessions: [{ clusterId: homes[search.get('shard') ?? ''] }] } }
        : undefined;
    await page.goto(stub.url('/needs?cluster=prod-eu'));
    await seen('shard-0 · prod-eu');
    await page.locator('[data-jump]').fill('batch');
    await page.getByRole('option', { name: /needs of this cluster/ }).click();
    await seen('shard-2 · batch');
  });
  it('to a machine of a cluster find its shard', async () => {
    stub.override = (path, search) =>
      path === 'machines/shard-1/m-00004'
        ? undefined
        : path.startsWith('machines/') || (path === 'machines' && search.get('shard') !== 'shard-1')
          ? { status: 404, body: { error: 'no machine of this shard' } }
          : undefined;
    await page.goto(stub.url('/clusters/prod-eu'));
    await page.getByRole('link', { name: 'm-00004', exact: true }).click();
    await page.getByRole('dialog', { name: 'Machine m-00004' }).getByText('Machine of shard-1').waitFor();
    await seen(/^shard-1 ·/);
    expect([query('cluster'), query('machine')]).toEqual(['prod-eu', 'm-00004']);
  });
  it('to a machine that is gone lead to the shard of its cluster', async () => {
    stub.override = (path, search) =>
      path.startsWith('machines/')
        ? { status: 404, body: { error: 'no such machine' } }
        : path === 'sessions'
          ? {
              body: {
                ...stub.fleet.sessions('x'),
                sessions: search.get('shard') === 'shard-2' ? [{ clusterId: 'prod-eu' }] : [],
              },
            }
          : undefined;
    await page.goto(stub.url('/machines?cluster=prod-eu&machine=m-00004'));
    await seen(/^shard-2 ·/);
    await page.getByRole('dialog').getByText('no such machine').waitFor();
  });
  it('to a machine of an id find its shard, one after the other', async () => {
    const homes: Record<string, string> = { 'm-00004': 'shard-1', 'm-00005': 'shard-2' };
    stub.override = (path) => {
      const [, shard, id] = /^machines\/([^/]+)\/(.+)$/.exec(path) ?? [];
      return id === undefined || homes[id] === shard ? undefined : { status: 404, body: { error: 'no such machine' } };
    };
    await page.goto(stub.url('/'));
    for (const [id, shard] of Object.entries(homes)) {
      await page.locator('[data-jump]').fill(id);
      await page.getByRole('option', { name: /machine of this id/ }).dispatchEvent('pointerdown');
      await page
        .getByRole('dialog', { name: `Machine ${id}` })
        .getByText(`Machine of ${shard}`)
        .waitFor();
      await page.getByRole('dialog').getByText('rolled back after a failure').first().waitFor();
    }
    await page.locator('[data-jump]').fill('m-00004');
    await page.getByRole('option', { name: /decisions on this machine/ }).dispatchEvent('pointerdown');
    await seen(/^shard-1 ·/);
    // What is typed from here on is a filter of this shard.
    await page.locator('main [data-search]').fill('m-00005');
    await until('it is asked', () => stub.asked.some((path) => /^decisions\?.*machine=m-00005/.test(path)));
    await seen(/^shard-1 ·/);
  });
  it.each([
    ['node', 'node-7'],
    ['prefix', 'm-00007'],
  ])('to the machine of a %s follow the answer to its shard', async (name, value) => {
    stub.override = (path, search) =>
      path === 'machines' && search.get(name) === value
        ? { body: { ...stub.fleet.machines('shard-1', 500, undefined, (one) => one.id === 'm-00007') } }
        : undefined;
    await page.goto(stub.url(`/machines?${name}=${value}`));
    await seen('m-00007');
    await until('the URL names its shard', () => query('shard') === 'shard-1');
    await seen(/^shard-1 ·/);
    expect(await page.locator('main select').first().inputValue()).toBe('shard-1');
    await page.getByRole('button', { name: 'm-00007' }).click();
    await page.getByRole('dialog', { name: 'Machine m-00007' }).getByText('Machine of shard-1').waitFor();
  });
  it('to a machine that another shard has show it as that one`s', async () => {
    stub.override = (path, search) =>
      path === 'machines/shard-0/m-00007' ? stub.plain('machines/shard-1/m-00007', search) : undefined;
    await page.goto(stub.url('/machines?shard=shard-0&machine=m-00007'));
    const drawer = page.getByRole('dialog', { name: 'Machine m-00007' });
    await drawer.getByText('Machine of shard-1').waitFor();
    await until('its decisions are asked for', () => stub.asked.some((path) => /^decisions\?.*m-00007/.test(path)));
    const asked = stub.asked.filter((path) => /^decisions\?.*m-00007/.test(path));
    expect(asked.filter((path) => !path.includes('shard=shard-1'))).toEqual([]);
    expect(await drawer.getByRole('link', { name: 'All of them' }).getAttribute('href')).toContain('shard=shard-1');
  });
  it('back to a question show it in the form', async () => {
    await page.goto(stub.url('/whatif?cluster=prod-eu'));
    const total = page.getByRole('textbox', { name: /Total of/ });
    for (const wanted of ['64', '32']) {
      await total.fill(wanted);
      await page.getByRole('button', { name: 'Ask the engine' }).click();
      await until('it is asked', () => (query('need') ?? '').includes(`"${wanted}"`));
    }
    await page.goBack();
    await until('the first again', async () => (await total.inputValue()) === '64');
  });
  it('of a decision without a machine lead to none', async () => {
    const one = { ...stub.fleet.decision(0), kind: 'SetActuation', machineId: '', clusterId: '', outcome: 'paused' };
    patch('decisions', () => ({ decisions: [one] }));
    await page.goto(stub.url(`/decisions?decision=${one.sequence}`));
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('link', { name: 'all decisions of this kind' }).waitFor();
    expect(await drawer.getByRole('link', { name: 'the machine' }).count()).toBe(0);
  });
});

describe('time', () => {
  it('of the point under the pointer is that of the axis', async () => {
    const abroad = await browser.newPage({ timezoneId: 'America/New_York', viewport: { width: 1440, height: 900 } });
    try {
      await abroad.goto(stub.url('/'));
      await abroad.getByRole('img', { name: /Actions per second by kind/ }).hover();
      await abroad
        .locator('figure')
        .getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
        .waitFor();
    } finally {
      await abroad.close();
    }
  });
  it('stands still in a moment of a recording', async () => {
    const file = join(ARTEFACTS, 'still.jsonl');
    const body = stub.fleet.topology();
    writeFileSync(file, JSON.stringify({ recorded: 'topology', at: Date.parse(body.queriedAt), body }));
    await page.clock.install();
    await page.goto(stub.url('/replay'));
    await page.locator('input[type=file]').first().setInputFiles(file);
    await page.clock.runFor(1000);
    await seen('Back to live');
    await page.getByRole('link', { name: 'Topology' }).first().click();
    await seen('coordinator-1');
    await page.clock.runFor(90_000);
    expect(await shown(/^silent/)).toBe(0);
    await seen(/^\d s ago$/);
  });
});
