// Every screen in every state: the right display, no error of the page, and nothing that an
// accessibility check finds, in both themes.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { accessible } from './axe';
import { ARTEFACTS, launch, open } from './browser';
import { STATES } from './states';
import { Stub } from './stub/server';

interface Wanted {
  /** `data-state` that must be there. */
  state?: string | string[];
  /** Texts that must be seen. */
  text?: (string | RegExp)[];
  /** Texts that must not. */
  never?: (string | RegExp)[];
}

const NEED = encodeURIComponent('{"aggregateResources":{"cpu":"64"}}');
const COORDINATOR: Wanted = { state: 'unwired', text: ['--coordinator-addr'] };
const METRICS: Wanted = { state: 'unwired', text: ['--prometheus-url'] };
const CRDS: Wanted = { state: 'unwired', text: ['--kubeconfig'] };
const UNKNOWN = '—';

const SCREENS: Record<string, { path: string; wants: Record<string, Wanted> }> = {
  overview: {
    path: '/',
    wants: {
      normal: { text: ['$184.32/h', 'Outranked', 'Provision'] },
      unwired: METRICS,
      empty: { text: ['No need is unmet.', 'none moved in 2 min', 'No samples in this time.'] },
      partial: {
        text: [UNKNOWN, 'not known', 'Not known.', 'not read to the end'],
        never: ['$0.00/h', 'No need is unmet.'],
      },
      full: { text: ['4M'] },
    },
  },
  shards: {
    path: '/shards',
    wants: {
      normal: { text: ['shard-1', '1.4 s', 'paused'] },
      unwired: METRICS,
      empty: { state: 'empty', text: ['No shard exports metrics.'] },
      partial: { text: [UNKNOWN, 'unknown'] },
      full: { text: ['shard-11'] },
    },
  },
  shard: {
    path: '/shards/shard-0',
    wants: {
      normal: { text: ['phase1', '4.1 ms', 'prod-eu', '2 held', 'not connected'] },
      unwired: { state: 'unwired', text: ['--prometheus-url', '--coordinator-addr'] },
      empty: { text: ['No cluster has spoken to this shard.', 'No samples in this time.'] },
      partial: { text: [UNKNOWN] },
    },
  },
  'shard-reports': {
    path: '/shard-reports',
    wants: {
      normal: { text: ['provider-ec2.bigfleet:7788', 'escalated', 'in-process fake'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: ['no shard has reported to it yet'], never: ['No shard is registered'] },
      empty: { state: 'empty', text: ['No shard is registered.'] },
      partial: { state: 'partial', text: ['2 silent', UNKNOWN] },
    },
  },
  topology: {
    path: '/topology',
    wants: {
      normal: { text: ['coordinator-1', 'leader', 'rack-1', 'draining 3'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding' },
      empty: { text: ['No domain is assigned.', 'No quota is set.'] },
      partial: { state: 'partial', text: ['connection refused', '--prometheus-url', UNKNOWN] },
    },
  },
  clusters: {
    path: '/clusters',
    wants: {
      normal: { text: ['prod-eu', 'ml-train'] },
      unwired: CRDS,
      empty: { state: 'empty', text: ['The kubeconfig has no contexts.'] },
      partial: { state: 'partial', text: ['timed out after 30 s', '1 not readable', UNKNOWN] },
      full: { text: ['200 of 20,000', 'Load more'] },
    },
  },
  cluster: {
    path: '/clusters/prod-eu',
    wants: {
      normal: { text: ['PriorityStarved', 'Provisioning', 'InsufficientInstanceCapacity'] },
      unwired: CRDS,
      empty: { text: ['This cluster asks for nothing.', 'No node is coming or here.'] },
      partial: { text: [/first 40 of 9,000/] },
    },
  },
  'available-capacity': {
    path: '/available-capacity',
    wants: {
      normal: { text: ['a hint, not a promise', 'high', '$0.77/h'] },
      unwired: CRDS,
      empty: { state: 'empty', text: ['No cluster has a hint.'] },
      partial: { state: 'partial', text: ['forbidden'] },
    },
  },
  needs: {
    path: '/needs?cluster=*',
    wants: {
      normal: { text: ['cut-line', 'contested', 'no single domain', /short \d+/, 'satisfied'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: ['judged nothing yet'], never: ['needs anything'] },
      empty: { state: 'empty', text: ['No cluster of this shard needs anything.'] },
      partial: { text: ['first 46 of 90,000'] },
      full: { text: ['20,000 shown'] },
    },
  },
  finops: {
    path: '/finops',
    wants: {
      normal: { text: ['Pinned work on Spot', 'not checked', 'prices as providers declare them', '$184.32/h'] },
      unwired: METRICS,
      empty: { text: ['No red flag is up', 'No machine is configured.', 'No samples in this time.'] },
      partial: { text: [UNKNOWN, 'Not known.'], never: ['$0.00/h'] },
    },
  },
  machines: {
    path: '/machines',
    wants: {
      normal: { text: ['m-00000', '120 of 120 machines', 'configured'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding' },
      empty: { state: 'empty', text: ['This shard has no machines.'] },
      partial: { text: [/^120 machines$/] },
      full: { text: ['500 of 20,000 machines', 'Load more'] },
    },
  },
  decisions: {
    path: '/decisions',
    wants: {
      normal: { text: ['configure for prod-eu', 'provider-error', 'nothing idle matched'] },
      unwired: COORDINATOR,
      empty: { state: 'empty' },
      partial: { text: ['incomplete', 'not read to the end'] },
      full: { text: ['500 shown'] },
    },
  },
  replay: {
    path: '/replay',
    wants: {
      normal: { text: ['Choose a run folder', 'Record'] },
      loading: { text: ['Choose files'] },
      unwired: { text: ['Choose files'] },
      failing: { text: ['Choose files'] },
    },
  },
  whatif: {
    path: `/whatif?shard=shard-0&need=${NEED}`,
    wants: {
      normal: { text: ['fits', 'after preempting lower work', '$491.60/h', 'rack-7'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding' },
    },
  },
};

/** Where a screen has no word of its own for a state, the state says what every panel shows. */
const DEFAULTS: Record<string, Wanted> = {
  loading: { state: 'loading' },
  failing: { state: 'failed', text: ['timed out after 5 s'] },
};
/** Screens of which every age is when it was read: they grow old only when nobody answers. */
const READ_NOW = new Set(['clusters', 'cluster', 'available-capacity', 'decisions', 'replay']);

let browser: Browser;
const stub = new Stub();

beforeAll(async () => {
  await stub.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await stub.stop();
});
afterEach(() => stub.reset());

async function settled(page: Page, wanted: Wanted): Promise<void> {
  for (const state of [wanted.state ?? []].flat())
    await page.locator(`[data-state="${state}"]`).first().waitFor({ timeout: 15_000 });
  for (const text of wanted.text ?? [])
    await page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 15_000 });
  for (const text of wanted.never ?? [])
    expect(await page.getByText(text).filter({ visible: true }).count(), `${text} must not be shown`).toBe(0);
}

describe.each(Object.entries(SCREENS))('%s', (name, { path, wants }) => {
  it.each(['normal', ...Object.keys(STATES)])('%s', async (state) => {
    const { page, errors } = await open(browser);
    try {
      STATES[state]?.(stub);
      await page.goto(stub.url(path));
      await page.getByRole('heading', { level: 1 }).waitFor();
      const wanted = wants[state] ?? DEFAULTS[state] ?? {};
      if (state === 'stale' && !READ_NOW.has(name)) wanted.text = [name === 'topology' ? /silent 6 min/ : 'stale'];
      await settled(page, wanted);
      expect(await page.locator('text=/NaN|undefined|\\[object/').count(), 'no broken value').toBe(0);
      if (state !== 'full') await accessible(page, `${name} ${state}`);
      else await page.screenshot({ path: `${ARTEFACTS}/${name}-full.png` });
      expect(errors).toEqual([]);
    } finally {
      await page.close();
    }
  });
});

describe('drawers', () => {
  it.each([
    ['need', `/needs?cluster=*`, 'tr.open >> nth=0'],
    ['machine', '/machines?machine=m-00003', ''],
    ['decision', '/decisions', 'tr.open >> nth=3'],
    ['keyboard', '/', ''],
  ])('%s', async (name, path, row) => {
    const { page, errors } = await open(browser);
    await page.goto(stub.url(path));
    if (row) await page.locator(row).click({ position: { x: 620, y: 10 } });
    if (name === 'keyboard') {
      await page.getByText('Outranked').waitFor();
      await page.keyboard.press('?');
    }
    await page.getByRole('dialog').waitFor();
    if (name === 'need') await page.getByText('also hold the smallest unit').waitFor();
    if (name === 'machine') await page.getByText('rolled back after a failure').first().waitFor();
    await accessible(page, `drawer ${name}`);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(errors).toEqual([]);
    await page.close();
  });
});
