// How data is kept current, and what is said when it is not.

import { describe, expect, it } from 'vitest';
import { hide, page, seen, stub, until } from './session';

describe('freshness', () => {
  it('news arrive by stream and are not polled meanwhile', async () => {
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('46 shown');
    await until('a stream with the topics', () => stub.streams.size === 1);
    expect(stub.asked.some((path) => path.includes('topics=needs%3Ashard-0%2Ctopology'))).toBe(true);
    await seen('live');
    const before = stub.asked.filter((path) => path.startsWith('needs')).length;
    stub.tell('needs:shard-0', { shard: 'shard-0', cycle: 18_232 });
    await until('asked again', () => stub.asked.filter((path) => path.startsWith('needs')).length === before + 1);
  });
  it('decisions tick', async () => {
    await page.goto(stub.url('/'));
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    stub.tell('decisions', { ...stub.fleet.decision(0), shard: 'shard-9', sequence: '77', machineId: 'm-fresh' });
    await seen('m-fresh');
    for (const shard of ['shard-0', 'shard-2']) stub.tell('summary', stub.fleet.summary(shard));
    await seen('paused: shard-2');
  });
  it.each(['pointer', 'keyboard'])('decisions hold still under the %s, and none is lost', async (means) => {
    await page.goto(stub.url('/'));
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    const log = page.getByRole('log');
    await log.getByText('configure for').first().waitFor();
    if (means === 'pointer') await log.hover();
    else {
      await page.getByRole('link', { name: 'All decisions' }).focus();
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement?.getAttribute('role'))).toBe('log');
    }
    await seen('held');
    const before = await log.innerText();
    const one = { ...stub.fleet.decision(0), shard: 'shard-9' };
    stub.tell('decisions', { ...one, sequence: '77', machineId: 'm-first' });
    stub.tell('decisions', { ...one, sequence: '78', machineId: 'm-second' });
    await page.waitForTimeout(500);
    expect(await log.innerText()).toBe(before);
    if (means === 'pointer') await page.mouse.move(0, 0);
    else await page.keyboard.press('Shift+Tab');
    await log.getByText('m-first').waitFor();
    await log.getByText('m-second').waitFor();
    expect(await page.getByText('held', { exact: true }).count()).toBe(0);
  });
  it('without a stream it polls', async () => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('46 shown');
    await seen('polling');
    const before = stub.asked.filter((path) => path.startsWith('needs')).length;
    await page.clock.runFor(11_000);
    await until('asked again', () => stub.asked.filter((path) => path.startsWith('needs')).length > before);
  });
  it('polls the shard of which the stream does not tell, and no other', async () => {
    await page.clock.install();
    await page.goto(stub.url('/decisions?shard=shard-0'));
    await seen('create for');
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    const asked = (): number => stub.asked.filter((path) => path.startsWith('decisions')).length;
    const tell = async (notice: object): Promise<void> => {
      stub.tell('source', { topic: 'decisions', error: 'no answer in time', ...notice });
      await page.waitForTimeout(100);
    };
    const before = asked();
    await tell({ shard: 'shard-1', state: 'failed' });
    await page.clock.runFor(11_000);
    expect(asked(), 'another shard is silent').toBe(before);
    await tell({ shard: 'shard-0', state: 'failed' });
    await page.clock.runFor(11_000);
    await until('asked again', () => asked() > before);
    await tell({ shard: 'shard-0', state: 'ok' });
    const then = asked();
    await page.clock.runFor(11_000);
    expect(asked(), 'it tells again').toBe(then);
  });
  it('decisions of a shard of which the stream does not tell are asked for', async () => {
    const rows = { ...stub.fleet.decisions('shard-2', 1, () => true) };
    rows.decisions = [{ ...stub.fleet.decision(0), sequence: '5', machineId: 'm-silent' }];
    let dead = false;
    stub.override = (path, search) => {
      if (path !== 'decisions' || search.get('shard') !== 'shard-2') return undefined;
      return dead ? { status: 502, body: { error: 'no answer in time' } } : { body: rows };
    };
    await page.clock.install();
    await page.goto(stub.url('/'));
    await page.clock.runFor(500);
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    expect(await page.getByText('m-silent').count()).toBe(0);
    stub.tell('source', { topic: 'decisions', shard: 'shard-2', state: 'failed', error: 'the stream ended' });
    await seen('m-silent');
    expect(stub.asked.some((path) => path.startsWith('decisions?shard=shard-1'))).toBe(false);
    dead = true;
    await page.clock.runFor(11_000);
    await seen('nothing heard of 1 shard');
    stub.tell('source', { topic: 'decisions', shard: 'shard-2', state: 'ok' });
    await page.getByText('nothing heard of 1 shard').waitFor({ state: 'detached' });
  });
  it('asks for needs of which nothing is told', async () => {
    await page.clock.install();
    await page.goto(stub.url('/needs?shard=shard-0&cluster=*'));
    await seen('46 shown');
    await until('a stream', () => stub.streams.size === 1);
    await seen('live');
    const before = stub.asked.filter((path) => path.startsWith('needs')).length;
    await page.clock.runFor(11_000);
    await until('asked again', () => stub.asked.filter((path) => path.startsWith('needs')).length > before);
  });
  it('a hidden tab stops both, and catches up', async () => {
    await page.clock.install();
    await page.goto(stub.url('/'));
    await seen('$184.32/h');
    await page.clock.runFor(500);
    await until('a stream', () => stub.streams.size === 1);
    await hide(true);
    await page.clock.runFor(500);
    await until('no stream', () => stub.streams.size === 0);
    const before = stub.asked.length;
    await page.clock.runFor(120_000);
    expect(stub.asked.slice(before)).toEqual([]);
    await hide(false);
    await page.clock.runFor(500);
    await until('asked again', () => stub.asked.slice(before).includes('fleet/overview'));
    await until('a stream again', () => stub.streams.size === 1);
  });
  it.each([
    '/',
    '/shards',
    '/shards/shard-0',
    '/shard-reports',
    '/topology',
    '/clusters',
    '/clusters/prod-eu',
    '/available-capacity',
    '/needs?cluster=*',
    '/finops',
    '/machines',
    '/decisions',
  ])('what nobody refreshes turns stale: %s', async (path) => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url(path));
    await page.locator('[data-state="full"]').first().waitFor();
    expect(await page.locator('.stale').count()).toBe(0);
    stub.override = () => 'hang';
    await page.clock.runFor(70_000);
    await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
  });
  it.each([
    ['machines', '/machines?shard=shard-0', '.panel .stale'],
    [
      'whatif',
      `/whatif?shard=shard-0&need=${encodeURIComponent('{"aggregateResources":{"cpu":"64"}}')}`,
      '.panel .stale',
    ],
    ['explain', '/needs?shard=shard-0&cluster=*', '[role="dialog"] .stale'],
  ])('a shard that is stuck in a cycle is old, however fresh its answer: %s', async (route, path, where) => {
    const stuck = (seconds: number | undefined): void => {
      stub.override = (at, search) => {
        if (at !== route) return undefined;
        const body = stub.plain(at, search).body as object;
        const computedAtUnixNanos = seconds === undefined ? undefined : (Date.now() - seconds * 1000) * 1e6;
        return { body: { ...body, computedAtUnixNanos } };
      };
    };
    const look = async (): Promise<void> => {
      await page.goto(stub.url(path));
      if (route !== 'explain') return page.locator('.panel [data-state="full"]').first().waitFor();
      await page
        .locator('tr.open')
        .nth(4)
        .click({ position: { x: 620, y: 10 } });
      await seen('rank 23 of 46');
    };
    stuck(40);
    await look();
    await page
      .locator(where, { hasText: 'stale' })
      .getByText(/^4\d s ago$/)
      .waitFor();
    // A server that does not tell leaves the time of the reading.
    stuck(undefined);
    await look();
    await page
      .getByText(/^\d s ago$/)
      .first()
      .waitFor();
    expect(await page.locator(where).count()).toBe(0);
  });
  it.each(['clusters', 'clusters/prod-eu', 'available-capacity'])(
    'of managed clusters is asked every 15 s: %s',
    async (path) => {
      stub.streaming = false;
      await page.clock.install();
      await page.goto(stub.url(`/${path}`));
      await page.locator('[data-state="full"]').first().waitFor();
      const asked = (): number => stub.asked.filter((one) => one.startsWith(`${path}?`)).length;
      const before = asked();
      await page.clock.runFor(16_000);
      await until('asked again', () => asked() > before);
      stub.override = () => 'hang';
      await page.clock.runFor(46_000);
      await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
    },
  );
  it('what the stream carries does not turn stale while it is alive', async () => {
    await page.clock.install();
    await page.goto(stub.url('/decisions'));
    await seen('create for');
    await until('a stream', () => stub.streams.size === 1);
    for (let passed = 0; passed < 60; passed += 10) {
      await page.clock.runFor(10_000);
      stub.tell('heartbeat', { nowUnixNanos: Date.now() * 1e6 });
      await page.waitForTimeout(50);
    }
    expect(await page.locator('.stale').count()).toBe(0);
    stub.streaming = false;
    stub.override = () => 'hang';
    for (const stream of stub.streams) stream.destroy();
    await page.clock.runFor(70_000);
    await page.locator('.stale', { hasText: 'stale' }).first().waitFor();
  });
  it('keeps what it knew when a refresh fails, and says so', async () => {
    stub.streaming = false;
    await page.clock.install();
    await page.goto(stub.url('/shards'));
    await seen('shard-1');
    stub.override = (path) =>
      path === 'shards' ? { status: 502, body: { error: 'prometheus timed out after 5 s' } } : undefined;
    await page.clock.runFor(16_000);
    await page.locator('[data-state="partial"]').waitFor();
    await seen(/prometheus timed out after 5 s/);
    await seen('shard-1');
  });
});
