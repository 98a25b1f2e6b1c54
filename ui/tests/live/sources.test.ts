// Sources that are missing, dead, silent, being rebuilt, empty, half there and old: a display for each.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessible } from '../browser/axe';
import { ARTEFACTS, launch } from '../browser/browser';
import { Fleet, FULL } from '../browser/stub/fleet';
import { Dashboard, nobody, Silence } from './dashboard';
import { broken, openLive, seen } from './page';
import { binary, Process } from './process';

const NEED = encodeURIComponent('{"aggregateResources":{"cpu":"8"}}');
const SCREENS: [string, string, string][] = [
  ['overview', '/', '--prometheus-url'],
  ['shards', '/shards', '--prometheus-url'],
  ['shard', '/shards/shard-0', '--prometheus-url'],
  ['finops', '/finops', '--prometheus-url'],
  ['shard-reports', '/shard-reports', '--coordinator-addr'],
  ['topology', '/topology', '--coordinator-addr'],
  ['needs', '/needs?shard=shard-0', '--coordinator-addr'],
  ['machines', '/machines?shard=shard-0', '--coordinator-addr'],
  ['decisions', '/decisions?shard=shard-0', '--coordinator-addr'],
  ['whatif', `/whatif?shard=shard-0&cluster=one&need=${NEED}`, '--coordinator-addr'],
  ['clusters', '/clusters', '--kubeconfig'],
  ['cluster', '/clusters/one', '--kubeconfig'],
  ['available-capacity', '/available-capacity', '--kubeconfig'],
];
const CRDS = new Set(['clusters', 'cluster', 'available-capacity']);

const folder = mkdtempSync(join(tmpdir(), 'bigfleet-sources-'));
let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A page of its own, which must not fail. */
async function on(url: string, look: (page: Page) => Promise<void>): Promise<void> {
  const { page, errors } = await openLive(browser);
  try {
    await page.goto(url);
    await look(page);
    expect(await broken(page), `${url} has a broken value`).toBe(0);
    expect(errors).toEqual([]);
  } finally {
    await page.close();
  }
}

const shows = (page: Page, state: string): ReturnType<Page['waitForSelector']> =>
  page.waitForSelector(`[data-state="${state}"]`, { timeout: 25_000 });

/** Many at once: most of the time they wait. */
async function each(screens: typeof SCREENS, look: (screen: (typeof SCREENS)[number]) => Promise<void>): Promise<void> {
  const left = [...screens];
  await Promise.all(
    [0, 1, 2].map(async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await look(next);
    }),
  );
}

function kubeconfig(addr: string): string {
  const file = join(folder, `kubeconfig-${addr.replace(/\W/g, '-')}`);
  const names = ['one', 'two'];
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: names.map((name) => ({ name, cluster: { server: `http://${addr}` } })),
      users: [{ name: 'reader', user: {} }],
      contexts: names.map((name) => ({ name, context: { cluster: name, user: 'reader' } })),
    }),
  );
  return file;
}

describe('sources', () => {
  it('that nobody gave: every screen names the flag that wires it', async () => {
    const dashboard = await Dashboard.start();
    try {
      await each(SCREENS, ([name, path, flag]) =>
        on(dashboard.url + path, async (page) => {
          await shows(page, 'unwired');
          await seen(page, flag);
          await page.screenshot({ path: `${ARTEFACTS}/live-missing-${name}.png` });
          if (name === 'overview') await accessible(page, 'live missing sources');
        }),
      );
    } finally {
      await dashboard.stop();
    }
  });

  it('that are dead: every screen says which does not answer', async () => {
    const dead = await nobody();
    const dashboard = await Dashboard.start(
      `--prometheus-url=http://${dead}`,
      `--coordinator-addr=${dead}`,
      `--kubeconfig=${kubeconfig(dead)}`,
    );
    try {
      await each(SCREENS, ([name, path]) =>
        on(dashboard.url + path, async (page) => {
          // One cluster that fails is a row that says so, never a page.
          if (name === 'clusters' || name === 'available-capacity') {
            await shows(page, 'partial');
            await seen(page, 'two');
          } else await shows(page, 'failed');
          expect(await page.locator('[data-state="unwired"]').count(), `${name} is wired`).toBe(0);
          await page.screenshot({ path: `${ARTEFACTS}/live-dead-${name}.png` });
          if (name === 'needs') await accessible(page, 'live dead sources');
        }),
      );
    } finally {
      await dashboard.stop();
    }
  });

  it('that are silent: every screen waits, and then says so', async () => {
    const silence = new Silence();
    const addr = await silence.start();
    const dashboard = await Dashboard.start(
      `--prometheus-url=http://${addr}`,
      `--coordinator-addr=${addr}`,
      `--kubeconfig=${kubeconfig(addr)}`,
    );
    try {
      await each(SCREENS, ([name, path]) =>
        on(dashboard.url + path, async (page) => {
          await shows(page, 'loading');
          await page.screenshot({ path: `${ARTEFACTS}/live-silent-${name}.png` });
          // The time for one cluster is 30 s, which the server's own tests wait for.
          if (!CRDS.has(name)) await shows(page, 'failed');
        }),
      );
    } finally {
      await dashboard.stop();
      await silence.stop();
    }
  });
});

describe('a fleet', () => {
  const parts: { stop(): Promise<void> }[] = [];
  const bigfleet = binary('bigfleet', 'BIGFLEET_BIN');
  const data = mkdtempSync(join(folder, 'fleet-'));
  let addr: string;
  let raft: string;
  let coordinator: Process;
  let dashboard: Dashboard;

  function keep<T extends { stop(): Promise<void> }>(part: T): T {
    parts.push(part);
    return part;
  }
  const coordinate = (): Process =>
    keep(
      new Process('bigfleet coordinator', bigfleet, [
        'coordinator',
        '--bootstrap',
        '--id=coordinator-0',
        '--metrics-addr=0',
        `--listen=${addr}`,
        `--raft-bind=${raft}`,
        `--data-dir=${join(data, 'coordinator')}`,
      ]),
    );
  async function shard(id: string, ...flags: string[]): Promise<Process> {
    const process = keep(
      new Process(`bigfleet shard ${id}`, bigfleet, [
        'shard',
        `--id=${id}`,
        `--listen=${await nobody()}`,
        '--metrics-addr=127.0.0.1:0',
        `--data-dir=${join(data, id)}`,
        `--coordinator-addr=${addr}`,
        '--coordinator-heartbeat-interval=1s',
        ...flags,
      ]),
    );
    await process.said(/serving metrics and probes/, 30);
    return process;
  }
  async function registered(ids: string[]): Promise<void> {
    const end = Date.now() + 30_000;
    for (;;) {
      const response = await fetch(`${dashboard.url}/api/shard-reports`);
      const body = (await response.json()) as { reports?: { shardId: string }[] };
      if (ids.every((id) => body.reports?.some((one) => one.shardId === id))) return;
      if (Date.now() > end) throw new Error(`never registered: ${ids.join(', ')}; ${JSON.stringify(body)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  beforeAll(async () => {
    [addr, raft] = [await nobody(), await nobody()];
    coordinator = coordinate();
    await coordinator.said(/opening the fleet/, 30);
    dashboard = keep(await Dashboard.start(`--coordinator-addr=${addr},${await nobody()}`));
  });
  afterAll(async () => {
    for (const part of parts.reverse()) await part.stop();
  });

  it('of which nothing is registered is told from one that is not there', async () => {
    await on(`${dashboard.url}/shard-reports`, async (page) => {
      await shows(page, 'empty');
      await seen(page, 'No shard is registered.');
    });
  });

  it('with a replica that does not answer is shown, and the replica named', async () => {
    await on(`${dashboard.url}/topology`, async (page) => {
      await shows(page, 'partial');
      await seen(page, 'coordinator-0');
      // Rates are not known without metrics, which is not 0.
      await seen(page, '--prometheus-url');
      await seen(page, '—');
      await seen(page, 'unauthenticated transport');
      await accessible(page, 'live partial topology');
    });
  });

  it('being rebuilt, being empty and being old are three displays', async () => {
    const silence = keep(new Silence());
    await shard('rebuilding', `--provider-addr=${await silence.start()}`);
    const empty = await shard('empty', '--seed-machines=0');
    await registered(['rebuilding', 'empty']);
    await on(`${dashboard.url}/needs?shard=rebuilding`, async (page) => {
      await shows(page, 'rebuilding');
      await seen(page, /judged nothing yet/);
      await accessible(page, 'live rebuilding needs');
      await page.goto(`${dashboard.url}/machines?shard=rebuilding`);
      await shows(page, 'rebuilding');
      await page.goto(`${dashboard.url}/whatif?shard=rebuilding&cluster=one&need=${NEED}`);
      await page.waitForSelector('[data-state="rebuilding"], [data-state="failed"]');
    });
    await on(`${dashboard.url}/needs?shard=empty`, async (page) => {
      await seen(page, 'No cluster of this shard needs anything.');
      await shows(page, 'empty');
      await accessible(page, 'live empty needs');
      await page.goto(`${dashboard.url}/machines?shard=empty`);
      await seen(page, 'This shard has no machines.');
      await page.goto(`${dashboard.url}/decisions?shard=empty`);
      await shows(page, 'empty');
    });
    // The shard stops in the middle of everything; the page knows how old its picture is.
    const { page, errors } = await openLive(browser);
    await page.clock.install();
    await page.goto(`${dashboard.url}/needs?shard=empty`);
    await shows(page, 'empty');
    expect(await page.locator('.stale').count()).toBe(0);
    empty.signal('SIGSTOP');
    await page.clock.runFor(25_000);
    await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
    await accessible(page, 'live stale needs');
    empty.signal('SIGCONT');
    expect(errors).toEqual([]);
    await page.close();
  });

  it('whose coordinator has just returned says that it rebuilds', async () => {
    for (const part of parts.splice(0).filter((part) => part !== dashboard)) await part.stop();
    parts.push(dashboard);
    coordinator = coordinate();
    await coordinator.said(/serving gRPC/, 30);
    for (const path of ['/topology', '/shard-reports'])
      await on(dashboard.url + path, async (page) => {
        await page.waitForFunction(() => document.querySelector('[data-state="rebuilding"]') !== null, undefined, {
          timeout: 30_000,
        });
        await page.screenshot({ path: `${ARTEFACTS}/live-rebuilding${path.replace('/', '-')}.png` });
      });
  });
});

it('twenty thousand rows, from a recording, in the app that the binary serves', async () => {
  const fleet = new Fleet(FULL);
  const at = Date.now();
  const answers: [string, object][] = [
    ['topology', fleet.topology()],
    ['fleet/overview', fleet.overview()],
    ['needs?limit=20000&shard=shard-0', fleet.needs('shard-0', undefined, 20_000)],
    ['machines?limit=500&shard=shard-0', fleet.machines('shard-0', 20_000, undefined, () => true)],
    ['decisions?limit=1000&shard=shard-0', fleet.decisions('shard-0', 5000, () => true)],
    ['shards', fleet.shards()],
  ];
  const file = join(folder, 'full.jsonl');
  writeFileSync(file, answers.map(([recorded, body]) => JSON.stringify({ recorded, at, body })).join('\n'));
  const dashboard = await Dashboard.start();
  try {
    await on(`${dashboard.url}/replay`, async (page) => {
      await page.locator('input[type=file]').first().setInputFiles(file);
      await seen(page, 'Back to live');
      await page.getByRole('link', { name: 'Needs', exact: true }).first().click();
      await page.waitForFunction(() => location.search.includes('cluster='));
      await page.locator('main select').nth(1).selectOption('*');
      await seen(page, '20,000 shown');
      expect(await page.locator('tbody tr').count()).toBeLessThan(80);
      await page.screenshot({ path: `${ARTEFACTS}/live-full-needs.png` });
      for (const [link, text] of [
        ['Machines', /20,000 machines/],
        ['Decisions', /shown/],
        ['Shards', 'shard-11'],
      ] as const) {
        await page.getByRole('link', { name: link, exact: true }).first().click();
        await seen(page, text);
      }
    });
  } finally {
    await dashboard.stop();
  }
});
