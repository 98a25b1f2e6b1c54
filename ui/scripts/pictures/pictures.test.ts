// The pictures of the README, out of a live demo: `npm run pictures`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../../tests/browser/browser';
import { Demo, Hand } from '../../tests/live/demo';
import { openLive, seen } from '../../tests/live/page';
import { Film } from './film';

const IMAGES = fileURLToPath(new URL('../../../docs/images', import.meta.url));
const KB = 1024;
let demo: Demo;
let hand: Hand;
let browser: Browser;

beforeAll(async () => {
  mkdirSync(IMAGES, { recursive: true });
  [demo, browser] = await Promise.all([Demo.start(), launch()]);
  hand = new Hand(demo.where.guide);
  await hand.until('the baseline', (state) => state.run?.name === 'reset' && state.run.state === 'passed');
});
afterAll(async () => {
  await browser?.close();
  await demo?.stop();
});

function keep(name: string, picture: Buffer, most: number): void {
  console.log(`${name}: ${(picture.length / KB).toFixed(0)} KB`);
  expect(picture.length, name).toBeLessThan(most);
  writeFileSync(join(IMAGES, name), picture);
}

it('the guide during a scenario, as a film and as a still', async () => {
  const { guide } = demo.where;
  const { page } = await openLive(browser, { guide, width: 1280, height: 800 });
  await page.goto(guide);
  await seen(page, 'Owned bare metal');
  await page.getByRole('button', { name: 'Burst' }).click();
  const film = new Film(page);
  await film.shoot();
  await page.getByRole('button', { name: /^Run/ }).click();
  let still: Buffer | null = null;
  await film.until(
    async () => {
      const { run } = await hand.state();
      // The first claim holds: everything is under way.
      if (still === null && (await page.getByText('holds', { exact: true }).count()) > 0)
        still = await page.screenshot();
      return run?.name === 'burst' && run.state !== 'running';
    },
    400,
    2500,
  );
  expect((await hand.state()).run).toMatchObject({ name: 'burst', state: 'passed' });
  keep('demo.webp', await film.develop(browser, 1400 * KB), 1500 * KB);
  keep('guide.png', still ?? (await page.screenshot()), 300 * KB);
  await page.close();
});

it('the dashboard, and why a need waits', async () => {
  const { dashboard } = demo.where;
  const { page } = await openLive(browser, { width: 1280, height: 800 });
  await page.goto(dashboard);
  await hand.pressed();
  await page.getByText('Outranked').waitFor({ timeout: 60_000 });
  await page.goto(`${dashboard}/needs?shard=shard-0&cluster=*&status=all`);
  await page.locator('tbody tr', { hasText: 'Outranked' }).locator('.open').first().click();
  await page.getByRole('dialog').getByText('match the requirements').waitFor();
  await page
    .getByRole('dialog')
    .getByRole('row', { name: /cluster-b/ })
    .first()
    .waitFor();
  keep('explain.png', await page.screenshot(), 300 * KB);
  // A few points of each line.
  await page.goto(`${dashboard}/?range=15m`);
  await page.getByRole('img', { name: /Actions per second/ }).waitFor({ timeout: 60_000 });
  await page.getByText('Outranked').waitFor();
  await page
    .getByText(/configure for/)
    .first()
    .waitFor();
  keep('dashboard.png', await page.screenshot(), 300 * KB);
  await page.close();
});
