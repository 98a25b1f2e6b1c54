// The guide on a demo of its own, for it changes what the fleet wants.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { State } from '../../src/guide/types';
import { accessible } from '../browser/axe';
import { ARTEFACTS, launch } from '../browser/browser';
import { Demo, Hand } from './demo';
import { broken, firstPaint, openLive, seen } from './page';

let demo: Demo;
let guide: string;
let hand: Hand;
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  [demo, browser] = await Promise.all([Demo.start(), launch()]);
  guide = demo.where.guide;
  hand = new Hand(guide);
  await hand.until('the baseline', (state) => state.run?.name === 'reset' && state.run.state === 'passed');
});
afterAll(async () => {
  await browser?.close();
  expect(await demo?.stop(), 'what the demo leaves behind').toEqual([]);
});
beforeEach(async () => {
  ({ page, errors } = await openLive(browser, { guide }));
});
afterEach(async () => {
  await page.close();
  expect(errors).toEqual([]);
});

/** Chosen and started by clicks, watched until it is over, and passed. */
async function play(title: string, name: string): Promise<State['run']> {
  await page.goto(guide);
  await page.getByRole('button', { name: title, exact: true }).click();
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByRole('button', { name: 'Reset', disabled: true }).waitFor();
  await page.screenshot({ path: `${ARTEFACTS}/live-guide-running-${name}.png` });
  const over = (state: State): boolean => state.run?.name === name && state.run.state !== 'running';
  const { run } = await hand.until('the run is over', over, 90);
  expect(run?.state, JSON.stringify(run)).toBe('passed');
  await page.getByText('claim holds').filter({ visible: true }).last().waitFor();
  return run;
}

describe('the guide', () => {
  it('paints in less than a second, and shows the fleet at rest', async () => {
    expect(await firstPaint(page, guide), 'first paint').toBeLessThan(1000);
    await seen(page, 'Owned bare metal');
    for (const text of [
      '$0.00/h',
      'Cluster A',
      'Cluster C',
      'the engine and every decision of it',
      'Simulated',
      /^leads/,
    ])
      await seen(page, text);
    for (const scenario of (await hand.state()).scenarios)
      await page.getByRole('button', { name: scenario.title }).waitFor();
    expect(await broken(page)).toBe(0);
    await accessible(page, 'live guide');
  });

  it('runs a scenario by a click, and its claims hold', async () => {
    const told = await play('Move', 'move');
    const claims = page.getByRole('list', { name: 'Claims' });
    expect(await claims.getByText('holds', { exact: true }).count()).toBe(told?.claims.length);
    for (const claim of told?.claims ?? []) await claims.getByText(claim.text).waitFor();
    // What it did is in the feed, in plain words.
    await seen(page, /^(take back from|drain for)|configure for/);
    await page.getByText('Reclaim').first().waitFor();
    await accessible(page, 'live guide after a run');
  });

  it('takes demand by stepper, and Reset takes it back', async () => {
    await page.goto(guide);
    const card = page.getByRole('region', { name: 'Cluster A' });
    const level = card.getByLabel('Demand for production');
    const before = Number(await level.innerText());
    for (let click = 0; click < 2; click += 1)
      await card.getByRole('button', { name: 'More production in Cluster A' }).click();
    await hand.until("the wish is the cluster's", (state) => state.workspaces[0]?.levels.production === before + 2);
    await hand.until('its pods run', (state) => state.workspaces[0]?.pods.production?.running === before + 2);
    await page.waitForFunction(
      (want) => document.querySelector('output[aria-label="Demand for production"]')?.textContent === want,
      String(before + 2),
    );
    await page.getByRole('button', { name: 'Reset' }).click();
    await hand.until('the baseline', (state) => state.workspaces[0]?.levels.production === before);
    await page.waitForFunction(
      (want) => document.querySelector('output[aria-label="Demand for production"]')?.textContent === want,
      String(before),
    );
  });

  it('shows why a gang stands where it stands, and the rest in the dashboard', async () => {
    await play('Gang', 'gang');
    const drawer = page.getByRole('dialog', { name: 'Why this domain' });
    await drawer.getByText('chosen', { exact: true }).waitFor();
    await accessible(page, 'live guide gang');
    const link = await drawer.getByRole('link', { name: /whole explanation/ }).getAttribute('href');
    await page.goto(link ?? '');
    const need = page.getByRole('dialog', { name: 'Need of cluster-c' });
    await need.getByText('co-location: all machines share one value').waitFor();
    await need.getByText('all domains, best first').waitFor();
    await accessible(page, 'live gang explained');
  });

  it('leads from what is short to why, in the dashboard', async () => {
    await hand.pressed();
    await page.goto(guide);
    await seen(page, 'Outranked');
    await accessible(page, 'live guide under pressure');
    const [popup] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: 'why' }).first().click(),
    ]);
    await popup.waitForLoadState();
    const link = popup.url();
    await popup.close();
    await page.goto(link);
    await page.getByRole('dialog').getByText('What to do').waitFor({ timeout: 20_000 });
  });
});
