// Nothing that axe finds, in either theme; a picture of each.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { ARTEFACTS } from './browser';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Axe {
  run: (
    where: Document,
    options: object,
  ) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
}

export async function accessible(page: Page, where: string): Promise<void> {
  await page.evaluate(AXE);
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, theme);
    const found = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: Axe };
      const { violations } = await axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
      });
      return violations.map(
        (one) =>
          `${one.id}: ${one.nodes
            .slice(0, 3)
            .map((node) => `${node.html.slice(0, 200)} ${node.failureSummary?.slice(0, 300) ?? ''}`)
            .join(' | ')}`,
      );
    });
    await page.screenshot({ path: `${ARTEFACTS}/${where.replaceAll(' ', '-')}-${theme}.png` });
    expect(found, `${where}, ${theme}`).toEqual([]);
  }
}
