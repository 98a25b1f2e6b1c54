// Pages on live servers.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { open, type Watched } from '../browser/browser';

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
/** The app of this folder in place of the one in the binary: for work on it without a build of the binary. */
export const LOCAL = process.env.LIVE_DIST === '1';
const KINDS: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

export async function openLive(
  browser: Browser,
  options: Parameters<typeof open>[1] & { guide?: string } = {},
): Promise<Watched> {
  const watched = await open(browser, options);
  if (LOCAL) await fromDist(watched.page, options.guide);
  return watched;
}

export async function fromDist(page: Page, guide?: string): Promise<void> {
  await page.route(
    (url) => !/\/(api|auth|authorize)(\/|$)/.test(url.pathname),
    async (route) => {
      const url = new URL(route.request().url());
      const file = join(DIST, url.pathname);
      const found = file.startsWith(DIST) && existsSync(file) && statSync(file).isFile();
      const name = found ? file : join(DIST, url.origin === guide ? 'guide.html' : 'index.html');
      const headers: Record<string, string> = { 'content-type': KINDS[extname(name)] ?? 'text/html; charset=utf-8' };
      // What the server lets its page do, this one may do.
      const policy = found ? undefined : (await route.fetch()).headers()['content-security-policy'];
      if (policy !== undefined) headers['content-security-policy'] = policy;
      await route.fulfill({ body: readFileSync(name), headers });
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

/** Milliseconds from the request to something to look at: the best of three, for machines are busy. */
export async function firstPaint(page: Page, url: string): Promise<number> {
  let best = Infinity;
  for (let turn = 0; turn < 3 && best >= 1000; turn += 1) {
    await page.goto(url);
    const paint = await page.waitForFunction(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
    );
    best = Math.min(best, (await paint.jsonValue()) ?? Infinity);
  }
  return best;
}
