// The guide of the demo.

import { beforeEach, describe, expect, it } from 'vitest';
import type { State } from '../../src/guide/types';
import { accessible } from './axe';
import { page, seen, stub, until } from './session';
import { decision, demoState, run } from './stub/demo';

stub.page = 'guide.html';
let state: State;

beforeEach(() => {
  state = demoState();
  stub.override = (path) => (path === 'state' ? { body: state } : undefined);
});

function moving(): object {
  const { decisions: _d, real: _r, simulated: _s, tiers: _t, ...rest } = state;
  return rest;
}

describe('the guide', () => {
  it('shows supply, clusters, decisions and what is real', async () => {
    await page.goto(stub.url('/'));
    for (const text of [
      'Owned bare metal',
      '$1.84/h',
      'Cluster A',
      'the engine, every cycle of it',
      'the clouds, their prices and their latencies',
      'nothing idle matched, so capacity is created',
      'coordinator-2',
      'rebuilding',
      'dry-run',
      'claim holds',
      'claim failed',
      'Outranked',
      'not connected',
      '2 held',
    ])
      await seen(text);
    await accessible(page, 'guide');
  });

  it('keeps what is real and what is not in sight, however far one scrolls', async () => {
    await page.goto(stub.url('/'));
    await seen('Owned bare metal');
    await page.mouse.wheel(0, 2000);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    expect(
      await page.getByRole('complementary').evaluate((node) => {
        const box = node.getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight;
      }),
    ).toBe(true);
  });

  it('keeps them in sight in a narrow window, too', async () => {
    await page.setViewportSize({ width: 900, height: 700 });
    await page.goto(stub.url('/'));
    await seen('Owned bare metal');
    for (const part of [0, 0.5, 1]) {
      await page.evaluate((part) => scrollTo(0, document.body.scrollHeight * part), part);
      const found = await page.getByRole('complementary').evaluate((node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        const at = [left + 2, (left + right) / 2, right - 2].map((x) =>
          node.contains(document.elementFromPoint(x, (top + bottom) / 2)),
        );
        return { inside: top >= 0 && bottom <= innerHeight, uncovered: !at.includes(false), high: bottom - top };
      });
      expect(found, `at ${part} of the page`).toMatchObject({ inside: true, uncovered: true });
      expect(found.high, 'room is left for the rest').toBeLessThan(120);
    }
    await accessible(page, 'guide narrow');
  });

  it('takes several clicks on a stepper for one wish', async () => {
    await page.goto(stub.url('/'));
    const more = page.getByRole('button', { name: 'More batch in Cluster A' });
    // In one turn of the page: however slow the machine is, they are quick.
    await more.evaluate((button: HTMLElement) => {
      for (let click = 0; click < 3; click += 1) button.click();
    });
    await until('the wish', () => stub.posts.length > 0);
    expect(stub.posts).toMatchObject([{ path: 'demand', body: { workspace: 'a', level: 7, tier: 'batch' } }]);
  });

  it('runs a scenario, step by step, and never tells a failed claim as success', async () => {
    await page.goto(stub.url('/'));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await until('the wish', () => stub.posts.length > 0);
    expect(stub.posts[0]).toMatchObject({ path: 'scenario', body: { name: 'move' } });
    await until('a stream', () => stub.streams.size === 1);
    state = { ...state, run: run('running') };
    stub.tell('state', moving());
    await seen('A drops to 2, B rises to 14');
    await page.getByText('open', { exact: true }).first().waitFor();
    expect(await page.getByRole('button', { name: 'More batch in Cluster A' }).isDisabled()).toBe(true);
    expect(await page.getByRole('button', { name: 'Reset' }).isDisabled()).toBe(true);
    state = { ...state, run: run('failed') };
    stub.tell('state', moving());
    await page.getByRole('alert').getByText('This run did not show what it claims.').waitFor();
    await seen('$0.00 before, $0.38 during');
    await accessible(page, 'guide failed run');
  });

  it('hears decisions and their outcomes', async () => {
    await page.goto(stub.url('/'));
    await until('a stream', () => stub.streams.size === 1);
    await seen('spot-3');
    stub.tell('decisions', {
      decisions: [
        decision(9, { machine: 'spot-nine' }),
        decision(10, { machine: 'spot-nine', ofSequence: 9, outcome: 'provider_error' }),
      ],
    });
    await seen('spot-nine');
    expect(await page.locator('li', { hasText: 'spot-nine' }).innerText()).toContain('provider-error');
  });

  it('opens the explanation of a gang, once', async () => {
    state.run = {
      ...run('passed'),
      name: 'gang',
      explain: {
        shard: 'shard-1',
        cluster: 'cluster-c',
        fingerprint: 'f',
        group: 'llm\0ml',
        sameDomain: 'rack-2',
        domains: [
          { domain: 'rack-2', coveragePerMille: 1000, satisfiable: true },
          { domain: 'rack-3', coveragePerMille: 400, satisfiable: false },
        ],
      },
    };
    await page.goto(stub.url('/'));
    await page.getByRole('dialog', { name: 'Why this domain' }).getByText('rack-3').waitFor();
    await accessible(page, 'guide gang');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('says why a wish was refused', async () => {
    stub.override = (path) =>
      path === 'state'
        ? { body: state }
        : path === 'reset'
          ? { status: 409, body: { error: 'scenario move runs' } }
          : undefined;
    await page.goto(stub.url('/'));
    await page.getByRole('button', { name: 'Reset' }).click();
    await page.getByRole('alert').getByText('scenario move runs').waitFor();
  });

  it('says that the demo does not answer', async () => {
    stub.override = (path) => (path === 'state' ? { status: 503, body: { error: 'not ready yet' } } : undefined);
    stub.streaming = false;
    await page.goto(stub.url('/'));
    await page.locator('[data-state="failed"]').getByText('not ready yet').waitFor();
    await accessible(page, 'guide not ready');
  });

  it('says so where nothing comes, too', async () => {
    await page.addInitScript(() => {
      AbortSignal.timeout = () => {
        const late = new AbortController();
        setTimeout(() => late.abort(), 100);
        return late.signal;
      };
    });
    stub.override = () => 'hang';
    await page.goto(stub.url('/'));
    await page.locator('[data-state="failed"]').getByText('the demo does not answer').waitFor();
  });

  it('says how long nothing was heard', async () => {
    await page.clock.install();
    await page.goto(stub.url('/'));
    await page.clock.runFor(500);
    await seen('Owned bare metal');
    expect(await page.getByText(/stale/).count()).toBe(0);
    await page.clock.runFor(17_000);
    await seen(/^stale: nothing heard for 1[67] s$/);
    stub.tell('state', moving());
    await page.getByText(/stale/).waitFor({ state: 'detached' });
  });

  it('says what the demo itself cannot do', async () => {
    state.demo.problem = 'the dashboard has ended: address in use';
    await page.goto(stub.url('/'));
    await page.getByRole('alert').getByText('the dashboard has ended: address in use').waitFor();
  });

  it('begins a session of a hosted demo and carries its secret', async () => {
    let known = false;
    stub.override = (path) => {
      if (path === 'session') {
        known = true;
        return { status: 201, body: { session: 'secret', endsAtUnixMs: Date.now() + 3_600_000 } };
      }
      if (path === 'state') return known ? { body: state } : { status: 401, body: { error: 'no session' } };
      return undefined;
    };
    await page.goto(stub.url('/'));
    await seen('Owned bare metal');
    await until('a stream with it', () => stub.asked.includes('stream?session=secret'));
    await page.getByRole('button', { name: 'Reset' }).click();
    await until('the wish', () => stub.posts.some((post) => post.path === 'reset'));
    expect(stub.posts.find((post) => post.path === 'reset')?.authorization).toBe('Bearer secret');
  });

  it('tells when to try again where no fleet is free', async () => {
    stub.override = (path) => {
      if (path === 'session') return { status: 503, body: { error: 'no fleet is free; try again in 5 s' } };
      if (path === 'state') return { status: 401, body: { error: 'no session' } };
      return undefined;
    };
    stub.streaming = false;
    await page.goto(stub.url('/'));
    await page.locator('[data-state="failed"]').getByText('no fleet is free; try again in 5 s').waitFor();
  });
});
