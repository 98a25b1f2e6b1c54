// What a file of tests shares: a stub server, a browser, and for each test a page of its own that
// must leave no error behind. Importing it sets that up and takes it down.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { launch, open } from './browser';
import { Stub } from './stub/server';

export const stub = new Stub();
export let browser: Browser;
export let page: Page;
let errors: string[];

beforeAll(async () => {
  await stub.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await stub.stop();
});
beforeEach(async () => {
  ({ page, errors } = await open(browser));
});
afterEach(async () => {
  await page.close();
  stub.reset();
  expect(errors).toEqual([]);
});

export const seen = (text: string | RegExp): Promise<void> =>
  page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 10_000 });
export const query = (name: string): string | null => new URL(page.url()).searchParams.get(name);

/** Waits until a condition of the test itself holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function hide(hidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'visibilityState', {
      configurable: true,
      get: () => (hidden ? 'hidden' : 'visible'),
    });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
}
