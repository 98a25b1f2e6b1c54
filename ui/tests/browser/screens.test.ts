// Every screen in every state: the right display, no error of the page, and nothing that an
// accessibility check finds, in both themes.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { accessible } from './axe';
import { launch, open } from './browser';
import { STATES } from './states';
import { Stub } from './stub/server';

interface Wanted {
  /** `data-state` that must be there. */
  state?: string | string[];
  /** Texts that must be seen. */
  text?: (string | RegExp)[];
  /** Texts that must not. */
  never?: (string | RegExp)[];
  /** Where the state is another question. */
  path?: string;
}
/** A state that a screen cannot be in, and why. */
interface Absent {
  absent: string;
}
type Cell = Wanted | Absent;

const NEED = encodeURIComponent('{"aggregateResources":{"cpu":"64"}}');
const COORDINATOR: Wanted = { state: 'unwired', text: ['--coordinator-addr'] };
const METRICS: Wanted = { state: 'unwired', text: ['--prometheus-url'] };
const CRDS: Wanted = { state: 'unwired', text: ['--kubeconfig'] };
const UNKNOWN = '—';
const REBUILDING = 'has not finished a cycle since it started';
const NEVER_REBUILT: Absent = { absent: 'API servers are asked, and those do not rebuild' };
const READ_NOW: Absent = { absent: 'every age is that of reading: it grows old only when nobody answers' };
const ASKS_NOTHING: Absent = { absent: 'shows what a recording holds, and asks the server nothing' };

const SCREENS: Record<string, { path: string; cells: Record<string, Cell> }> = {
  overview: {
    path: '/',
    cells: {
      normal: { text: ['$184.32/h', 'Outranked', 'Provision'] },
      unwired: METRICS,
      rebuilding: { state: 'rebuilding', text: [`shard-0 ${REBUILDING}`], never: ['No decisions yet.'] },
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
    cells: {
      normal: { text: ['shard-1', '1.4 s', 'paused'] },
      unwired: METRICS,
      rebuilding: { absent: 'metrics tell no cycle: a shard without samples is not known, which is partial' },
      empty: { state: 'empty', text: ['No shard exports metrics.'] },
      partial: { text: [UNKNOWN, 'unknown'] },
      full: { text: ['shard-11'] },
    },
  },
  shard: {
    path: '/shards/shard-0',
    cells: {
      normal: { text: ['phase1', '4.1 ms', 'prod-eu', '2 held', 'not connected'] },
      unwired: { state: 'unwired', text: ['--prometheus-url', '--coordinator-addr'] },
      rebuilding: { state: 'rebuilding', text: [REBUILDING], never: ['No cluster has spoken to this shard.'] },
      empty: { text: ['No cluster has spoken to this shard.', 'No samples in this time.'], never: [REBUILDING] },
      partial: { text: [UNKNOWN] },
      full: { text: ['cluster-00007'] },
    },
  },
  'shard-reports': {
    path: '/shard-reports',
    cells: {
      normal: { text: ['provider-ec2.bigfleet:7788', 'escalated', 'in-process fake'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: ['no shard has reported to it yet'], never: ['No shard is registered'] },
      empty: { state: 'empty', text: ['No shard is registered.'] },
      partial: { state: 'partial', text: ['2 silent', UNKNOWN] },
      full: { text: ['shard-11', '100+', 'shard-0: shortfalls'] },
    },
  },
  topology: {
    path: '/topology',
    cells: {
      normal: { text: ['coordinator-1', 'leader', 'rack-1', 'draining 3'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: ['not heard from any shard'], never: ['No shard is registered.'] },
      empty: { text: ['No domain is assigned.', 'No quota is set.'] },
      partial: { state: 'partial', text: ['connection refused', '--prometheus-url', UNKNOWN] },
      stale: { text: [/silent 6 min/] },
      full: { text: ['shard-11', /more domains: search narrows them down/] },
    },
  },
  clusters: {
    path: '/clusters',
    cells: {
      normal: { text: ['prod-eu', 'ml-train'] },
      unwired: CRDS,
      rebuilding: NEVER_REBUILT,
      stale: READ_NOW,
      empty: { state: 'empty', text: ['The kubeconfig has no contexts.'] },
      partial: { state: 'partial', text: ['timed out after 30 s', '1 not readable', UNKNOWN] },
      full: { text: ['200 of 20,000', 'Load more'] },
    },
  },
  cluster: {
    path: '/clusters/prod-eu',
    cells: {
      normal: { text: ['PriorityStarved', 'Provisioning', 'InsufficientInstanceCapacity'] },
      unwired: CRDS,
      rebuilding: NEVER_REBUILT,
      stale: READ_NOW,
      empty: { text: ['This cluster asks for nothing.', 'No node is coming or here.'] },
      partial: { text: [/first 40 of 9,000/] },
      full: { text: ['first 2,000 of 20,000', 'web-0003'] },
    },
  },
  'available-capacity': {
    path: '/available-capacity',
    cells: {
      normal: { text: ['a hint, not a promise', 'high', '$0.77/h'] },
      unwired: CRDS,
      rebuilding: NEVER_REBUILT,
      stale: READ_NOW,
      empty: { state: 'empty', text: ['No cluster has a hint.'] },
      partial: { state: 'partial', text: ['forbidden'] },
      full: { text: ['200 of 20,000 clusters.', 'Next clusters', 'prod-eu'] },
    },
  },
  needs: {
    path: '/needs?cluster=*',
    cells: {
      normal: { text: ['cut-line', 'contested', 'no single domain', /short \d+/, 'satisfied'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: ['judged nothing yet'], never: ['needs anything'] },
      empty: { state: 'empty', text: ['No cluster of this shard needs anything.'] },
      partial: { text: ['first 46 of 90,000'] },
      full: { text: ['20,000 shown'] },
    },
  },
  finops: {
    path: '/finops?shard=shard-0',
    cells: {
      normal: { text: ['Pinned work on Spot', 'not checked', 'prices as providers declare them', '$184.32/h'] },
      unwired: METRICS,
      rebuilding: {
        state: 'rebuilding',
        text: [REBUILDING],
        never: [
          'This shard has no machines.',
          'No red flag is up in this shard.',
          'No decision with a runner-up is kept.',
        ],
      },
      empty: {
        text: [
          'No red flag is up',
          'No machine is configured.',
          'No samples in this time.',
          'This shard has no machines.',
          'No red flag is up in this shard.',
          'No decision with a runner-up is kept.',
        ],
      },
      partial: {
        text: [UNKNOWN, 'Not known.', 'Beyond the first 200,000 machines'],
        never: ['$0.00/h', 'No red flag is up in this shard.'],
      },
      full: { text: ['$184.32/h', 'newest 500 shown', 'over 5,000 of 20,000 decisions'] },
    },
  },
  machines: {
    path: '/machines',
    cells: {
      normal: { text: ['m-00000', '120 of 120 machines', 'configured'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', never: ['This shard has no machines.'] },
      empty: { state: 'empty', text: ['This shard has no machines.'] },
      partial: { text: [/^120 machines$/] },
      full: { text: ['500 of 20,000 machines', 'Load more'] },
    },
  },
  decisions: {
    path: '/decisions',
    cells: {
      normal: { text: ['configure for prod-eu', 'provider-error', 'nothing idle matched'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', text: [REBUILDING], never: [/there are none/] },
      stale: READ_NOW,
      empty: { state: 'empty', text: [/there are none/] },
      partial: { text: ['incomplete', 'not read to the end'] },
      full: { text: ['500 shown'] },
    },
  },
  replay: {
    path: '/replay',
    cells: {
      normal: { text: ['Choose a run folder', 'Record'] },
      loading: { text: ['Choose files'] },
      unwired: { text: ['Choose files'] },
      failing: { text: ['Choose files'] },
      rebuilding: ASKS_NOTHING,
      empty: ASKS_NOTHING,
      partial: ASKS_NOTHING,
      stale: ASKS_NOTHING,
      full: ASKS_NOTHING,
    },
  },
  whatif: {
    path: `/whatif?shard=shard-0&need=${NEED}`,
    cells: {
      normal: { text: ['fits', 'after preempting lower work', '$491.60/h', 'rack-7'] },
      unwired: COORDINATOR,
      rebuilding: { state: 'rebuilding', never: ['fits', 'Still missing'] },
      empty: { path: '/whatif?shard=shard-0', state: 'empty', text: ['Nothing asked yet'] },
      partial: { text: ['Still missing', 'a machine of another cluster', UNKNOWN], never: ['$0.00/h', 'x-1'] },
      full: { text: ['1,000 or more'] },
    },
  },
};

/** Where a screen has no word of its own for a state, the state says what every panel shows. */
const DEFAULTS: Record<string, Cell> = {
  loading: { state: 'loading' },
  failing: { state: 'failed', text: ['timed out after 5 s'] },
  stale: { text: ['stale'] },
};
const EVERY = ['normal', ...Object.keys(STATES)];

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

describe.each(Object.entries(SCREENS))('%s', (name, { path, cells }) => {
  const cell = (state: string): Cell | undefined => cells[state] ?? DEFAULTS[state];
  const wanted = EVERY.flatMap((state): [string, Wanted][] => {
    const one = cell(state);
    return one === undefined || 'absent' in one ? [] : [[state, one]];
  });

  it('has a display for every state, or a reason why there is none', () => {
    expect(EVERY.filter((state) => cell(state) === undefined)).toEqual([]);
    for (const [state, { state: shown, text }] of wanted)
      expect(shown !== undefined || (text ?? []).length > 0, `${state} wants to see something`).toBe(true);
  });

  it.each(wanted)('%s', async (state, wanted) => {
    const { page, errors } = await open(browser);
    try {
      STATES[state]?.(stub);
      await page.goto(stub.url(wanted.path ?? path));
      await page.getByRole('heading', { level: 1 }).waitFor();
      await settled(page, wanted);
      expect(await page.locator('text=/NaN|undefined|\\[object/').count(), 'no broken value').toBe(0);
      await accessible(page, `${name} ${state}`);
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
