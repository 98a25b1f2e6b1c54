// Panels of Grafana on the overview: a frame of another origin, under the policy of the dashboard.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { accessible } from './axe';
import { page, seen, stub } from './session';

let grafana: Server;
let origin: string;
let asked = 0;

beforeAll(async () => {
  grafana = createServer((_, response) => {
    asked += 1;
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><html lang="en"><title>Panels</title><main><h1>Fleet panels</h1></main></html>');
  });
  await new Promise<void>((resolve) => grafana.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(grafana.address() as AddressInfo).port}`;
});
afterAll(() => {
  grafana.closeAllConnections();
  grafana.close();
});

it('are there where it is wired', async () => {
  stub.frames = `'self' ${origin}`;
  const config = { ...stub.fleet.config(), grafanaUrl: `${origin}/d/fleet` };
  stub.override = (path) => (path === 'config' ? { body: config } : undefined);
  await page.goto(stub.url('/'));
  await seen('$184.32/h');
  const region = page.getByRole('region', { name: 'Grafana' });
  await region.scrollIntoViewIfNeeded();
  await region.frameLocator('iframe[title="Grafana panels"]').getByText('Fleet panels').waitFor();
  await accessible(page, 'overview grafana');
});

it('are not, and nobody is asked, where it is not', async () => {
  const before = asked;
  await page.goto(stub.url('/'));
  await seen('$184.32/h');
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  expect(await page.locator('iframe').count()).toBe(0);
  expect(asked).toBe(before);
});
