// Sessions of a hosted demo end: 410 from then on.

import { beforeEach, describe, expect, it } from 'vitest';
import type { State } from '../../src/guide/types';
import { accessible } from './axe';
import { page, seen, stub, until } from './session';
import { demoState } from './stub/demo';

stub.page = 'guide.html';

describe('a session that is over', () => {
  const over = { status: 410, body: { error: 'the session is over; POST /api/session for another' } };
  /** The secret of the session that is not over. */
  let valid: string | null;
  let begun: number;
  let state: State;

  beforeEach(() => {
    [valid, begun] = ['first', 0];
    state = demoState();
    state.demo.hosted = true;
    state.demo.session = { endsAtUnixMs: Date.now() + 3_599_000, idleEndsAtUnixMs: Date.now() + 300_000 };
    stub.override = (path, search, bearer) => {
      if (path === 'session') {
        begun += 1;
        valid = 'second';
        return { status: 201, body: { session: valid, endsAtUnixMs: Date.now() + 3_600_000 } };
      }
      const told = bearer ?? search.get('session');
      if (told === null) return { status: 401, body: { error: 'no session' } };
      if (told !== valid) return over;
      return path === 'state' ? { body: state } : undefined;
    };
  });

  async function visit(secret: string): Promise<void> {
    await page.addInitScript((secret) => {
      if (sessionStorage.getItem('visited') === null) sessionStorage.setItem('bigfleet-demo-session', secret);
      sessionStorage.setItem('visited', 'once');
    }, secret);
    await page.goto(stub.url('/'));
  }
  const kept = (): Promise<string | null> => page.evaluate(() => sessionStorage.getItem('bigfleet-demo-session'));

  it('counted down, and offers another after a reload', async () => {
    await visit('first');
    await seen(/^session ends in 59 min/);
    valid = null;
    await page.reload();
    await page.locator('[data-state="ended"]').getByText('This session is over').waitFor();
    expect(await kept()).toBeNull();
    await accessible(page, 'guide over');
    await page.getByRole('button', { name: 'Start another' }).click();
    await seen('Owned bare metal');
    expect([await kept(), begun]).toEqual(['second', 1]);
  });

  it('is followed by another where the visitor just reloads', async () => {
    await visit('last week');
    await page.locator('[data-state="ended"]').waitFor();
    await page.reload();
    await seen('Owned bare metal');
    expect([await kept(), begun]).toEqual(['second', 1]);
  });

  it('offers another where it ends before the visitor`s eyes', async () => {
    await visit('first');
    await seen('Owned bare metal');
    await until('a stream', () => stub.streams.size === 1);
    valid = null;
    for (const stream of stub.streams) stream.end();
    await page.locator('[data-state="ended"]').getByText('This session is over').waitFor({ timeout: 15_000 });
    for (const name of ['Run', 'Reset', 'More batch in Cluster A'])
      expect(await page.getByRole('button', { name, exact: true }).isDisabled(), name).toBe(true);
    expect(await page.getByText(/^session ends in/).count()).toBe(0);
    await accessible(page, 'guide ended');
    await page.getByRole('button', { name: 'Start another' }).click();
    await page.locator('[data-state="ended"]').waitFor({ state: 'detached' });
    await until('a stream of the other', () => stub.asked.includes('stream?session=second'));
    await seen('Owned bare metal');
  });

  it('offers another where a wish is the first to hear of it', async () => {
    await visit('first');
    await seen('Owned bare metal');
    valid = null;
    await page.getByRole('button', { name: 'Reset' }).click();
    await page.locator('[data-state="ended"]').getByRole('button', { name: 'Start another' }).waitFor();
    expect(await page.getByText(/POST/).count()).toBe(0);
    await until('the stream is left', () => stub.streams.size === 0);
  });
});
