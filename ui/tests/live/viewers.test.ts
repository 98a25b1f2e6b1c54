// Who sees what: viewers with different cluster scopes on one live fleet.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ARTEFACTS, launch } from '../browser/browser';
import { Dashboard } from './dashboard';
import { Hand } from './demo';
import { CLIENT, Issuer, SECRET } from './issuer';
import { fromDist, LOCAL, seen } from './page';

const { guide, tls } = inject('where');
const issuer = new Issuer();
const folder = mkdtempSync(join(tmpdir(), 'bigfleet-viewers-'));
let browser: Browser;
let flags: string[];

beforeAll(async () => {
  await issuer.start();
  browser = await launch();
  const state = await new Hand(guide).pressed();
  const coordinators = state.coordinators as unknown as { address: string }[];
  flags = [
    `--coordinator-addr=${coordinators.map((one) => one.address).join(',')}`,
    ...['cert=readonly.crt', 'key=readonly.key', 'ca=ca.crt'].map((pair) => {
      const [flag, file] = pair.split('=');
      return `--tls-${flag}=${join(tls, file ?? '')}`;
    }),
  ];
});
afterAll(async () => {
  await browser?.close();
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(context: BrowserContext, url: string): Promise<{ status: number; text: string }> {
  const response = await context.request.get(url);
  return { status: response.status(), text: await response.text() };
}

describe('two viewers with different scopes', () => {
  let dashboard: Dashboard;
  const viewers = new Map<string, { context: BrowserContext; page: Page }>();

  beforeAll(async () => {
    const secret = join(folder, 'secret');
    writeFileSync(secret, SECRET);
    dashboard = await Dashboard.start(
      ...flags,
      '--auth=oidc',
      `--oidc-issuer=${issuer.url}`,
      `--oidc-client-id=${CLIENT}`,
      `--oidc-client-secret-file=${secret}`,
      '--oidc-allowed-groups=people',
      '--cluster-scope-claim=clusters',
    );
    for (const [name, cluster] of [
      ['ann', 'cluster-a'],
      ['ben', 'cluster-b'],
    ] as const) {
      issuer.claims = { sub: name, email: `${name}@example`, groups: ['people'], clusters: [cluster] };
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      const page = await context.newPage();
      // Whoever is not known is sent to the issuer, and back to where they wanted to go.
      await page.goto(`${dashboard.url}/auth/login?return=${encodeURIComponent('/needs?shard=shard-0&cluster=*')}`);
      expect(page.url()).toBe(`${dashboard.url}/needs?shard=shard-0&cluster=*`);
      if (LOCAL) await fromDist(page);
      viewers.set(name, { context, page });
    }
  });
  afterAll(async () => {
    for (const { context } of viewers.values()) await context.close();
    await dashboard?.stop();
  });

  it.each([
    ['ann', 'cluster-a', 'cluster-b'],
    ['ben', 'cluster-b', 'cluster-a'],
  ])('%s sees %s, and nothing of %s', async (name, own, other) => {
    const { context, page } = viewers.get(name) as { context: BrowserContext; page: Page };
    for (const [path, text] of [
      ['/needs?shard=shard-0&cluster=*', 'satisfied'],
      ['/machines?shard=shard-0&state=configured', own],
      ['/decisions?shard=shard-0', own],
      ['/shards/shard-0', own],
      ['/', 'Bootstrap'],
    ] as const) {
      await page.goto(dashboard.url + path);
      await seen(page, text);
      expect(await page.locator('body').innerText(), path).not.toContain(other);
      await page.screenshot({
        path: `${ARTEFACTS}/live-viewer-${name}-${path.split('?')[0]?.replaceAll('/', '') || 'overview'}.png`,
      });
    }
    await seen(page, `${name}@example`);
    // A link of a colleague: its cluster is refused, and told apart from one that is not there.
    await page.goto(`${dashboard.url}/decisions?shard=shard-0&cluster=${other}`);
    await page.locator('[data-state="denied"]').getByText(other).waitFor();
    for (const path of [`needs?shard=shard-0&cluster=${other}`, `machines?shard=shard-0&cluster=${other}`])
      expect(await ask(context, `${dashboard.url}/api/${path}`), path).toMatchObject({ status: 403 });
    for (const path of ['needs', 'machines', 'decisions', 'sessions', 'finops/shard', 'finops/savings']) {
      const { status, text } = await ask(context, `${dashboard.url}/api/${path}?shard=shard-0`);
      expect(status, path).toBe(200);
      expect(text, path).not.toContain(other);
    }
  });

  it('one whose session ends signs in and is back at the same view', async () => {
    const { context, page } = viewers.get('ben') as { context: BrowserContext; page: Page };
    const view = `${dashboard.url}/needs?cluster=cluster-b&shard=shard-0`;
    await page.goto(view);
    await seen(page, 'satisfied');
    await context.clearCookies();
    issuer.claims = { sub: 'ben', email: 'ben@example', groups: ['people'], clusters: ['cluster-b'] };
    const link = page.getByRole('link', { name: 'Sign in' }).first();
    await link.click({ timeout: 60_000 });
    await link.waitFor({ state: 'detached' });
    expect(page.url()).toBe(view);
    await seen(page, 'satisfied');
    await seen(page, 'ben@example');
  });

  it('the one who waits for others learns how many, not who', async () => {
    const { page } = viewers.get('ann') as { page: Page };
    await page.goto(`${dashboard.url}/needs?shard=shard-0&cluster=cluster-a&status=unmet`);
    await page.locator('tbody .open').first().click();
    const drawer = page.getByRole('dialog', { name: 'Need of cluster-a' });
    await drawer.getByText(/of clusters that you may not see/).waitFor();
    expect(await drawer.innerText()).not.toContain('cluster-b');
  });
});

it('a proxy says who looks; without it nobody sees anything', async () => {
  const dashboard = await Dashboard.start(
    ...flags,
    '--auth=proxy-header',
    '--auth-header=x-forwarded-user',
    '--auth-trusted-cidr=127.0.0.0/8',
  );
  const known = await browser.newContext({ extraHTTPHeaders: { 'x-forwarded-user': 'carol' } });
  const stranger = await browser.newContext();
  try {
    const page = await known.newPage();
    if (LOCAL) await fromDist(page);
    await page.goto(`${dashboard.url}/needs?shard=shard-0&cluster=*`);
    await seen(page, 'satisfied');
    await seen(page, 'carol');
    expect(await ask(stranger, `${dashboard.url}/api/needs?shard=shard-0`)).toMatchObject({ status: 401 });
    const unknown = await stranger.newPage();
    if (LOCAL) await fromDist(unknown);
    await unknown.goto(`${dashboard.url}/needs`);
    await unknown
      .getByText(/identity|Sign in/)
      .first()
      .waitFor();
    expect(await unknown.locator('body').innerText()).not.toContain('cluster-');
    await unknown.screenshot({ path: `${ARTEFACTS}/live-viewer-nobody.png` });
  } finally {
    await known.close();
    await stranger.close();
    await dashboard.stop();
  }
});
