// Pages on live servers.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { inject } from 'vitest';
import { open, type Watched } from '../browser/browser';

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
/** The app of this folder in place of the one in the binary: for work on it without a build of the binary. */
export const LOCAL = process.env.LIVE_DIST === '1';
const KINDS: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

export async function openLive(browser: Browser, options: Parameters<typeof open>[1] = {}): Promise<Watched> {
  const watched = await open(browser, options);
  if (LOCAL) await fromDist(watched.page);
  return watched;
}

export async function fromDist(page: Page): Promise<void> {
  const { guide } = inject('where');
  await page.route(
    (url) => !/\/(api|auth|authorize)(\/|$)/.test(url.pathname),
    async (route) => {
      const url = new URL(route.request().url());
      const file = join(DIST, url.pathname);
      const found = file.startsWith(DIST) && existsSync(file) && statSync(file).isFile();
      const page = url.origin === guide ? 'guide.html' : 'index.html';
      const name = found ? file : join(DIST, page);
      await route.fulfill({
        body: readFileSync(name),
        contentType: KINDS[extname(name)] ?? 'text/html; charset=utf-8',
      });
    },
  );
}

export async function seen(page: Page, text: string | RegExp, seconds = 20): Promise<void> {
  await page
    .getByText(text)
    .filter({ visible: true })
    .first()
    .waitFor({ timeout: seconds * 1000 });
}

/** Values that nothing ever has. */
export async function broken(page: Page): Promise<number> {
  return page.locator('main >> text=/NaN|undefined|\\[object|Infinity/').count();
}

/** Milliseconds from the request to something to look at. */
export function firstPaint(page: Page): Promise<number> {
  return page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity);
}
