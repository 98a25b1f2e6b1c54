// The other browser tests trust the stub server: what it says must have the form of what a live
// dashboard and a live demo say.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { demoState } from '../browser/stub/demo';
import { Stub } from '../browser/stub/server';
import { Hand } from './demo';
import { DIST, LOCAL } from './page';

const { guide, dashboard } = inject('where');
const stub = new Stub();
const hand = new Hand(guide);
const NEED = encodeURIComponent(
  '{"aggregateResources":{"nvidia.com/gpu":"16"},"minUnit":{"nvidia.com/gpu":"8"},"requirements":[{"key":"topology.bigfleet/rack","operator":"Same","values":[]}],"group":"g"}',
);

/** Objects whose keys are data and not names. */
const MAPS =
  /(By(State|CapacityType|Reason|Phase|Kind|Bucket|TypeAndState|StateAndType)|[rR]esources|minUnit|labels|allocatable|[dD]eficit|capacityFreed|perShard|Counts|PerSec|ByPhaseSeconds|RatePerSec|actionRates|dollarsPerHour|phaseMicros|actions|shortfalls|states|levels|pods|machines|sources|unmetReasons|(ByTypeAndState|ByStateAndType|dollarsPerHour)\.\*)$/;

function kind(value: unknown): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
}

/** What `wanted` has and `given` has not, or has in another form; `null` and nothing say nothing. */
function differences(wanted: unknown, given: unknown, path: string): string[] {
  if (wanted === null || given === null || wanted === undefined) return [];
  if (kind(wanted) !== kind(given)) return [`${path} is ${kind(given)}, not ${kind(wanted)}`];
  if (Array.isArray(wanted)) {
    const rows = given as unknown[];
    if (wanted.length === 0 || rows.length === 0) return [];
    return differences(merged(wanted), merged(rows), `${path}[]`);
  }
  if (typeof wanted !== 'object') return [];
  const have = given as Record<string, unknown>;
  if (MAPS.test(path)) return differences(merged(Object.values(wanted)), merged(Object.values(have)), `${path}.*`);
  return Object.entries(wanted).flatMap(([name, value]) =>
    name in have ? differences(value, have[name], `${path}.${name}`) : [`${path}.${name} is missing`],
  );
}

/** One of many, with every key that any of them has and a value wherever one has it. */
function merged(rows: readonly unknown[]): unknown {
  const known = rows.filter((row) => row !== null);
  if (known.length === 0) return null;
  if (!known.every((row) => kind(row) === 'object')) return known[0];
  const one: Record<string, unknown> = {};
  for (const row of known as Record<string, unknown>[])
    for (const [name, value] of Object.entries(row)) one[name] = one[name] ?? value;
  return one;
}

async function ask(path: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${dashboard}/api/${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

beforeAll(() => hand.pressed());

describe('the stub says what a live dashboard says', () => {
  it.each([
    'config',
    'fleet/overview',
    'fleet/actions?duration=1h&step=30s',
    'shards',
    'shards/shard-0',
    'shards/shard-0/trends?duration=15m&step=10s',
    'topology',
    'shard-reports',
    'needs?shard=shard-0',
    'finops/snapshot',
    'finops/trend?duration=1h&step=30s',
    'finops/shard?shard=shard-0',
    'finops/savings?shard=shard-0',
    'machines?shard=shard-0',
    'sessions?shard=shard-0',
    'decisions?shard=shard-0',
    `whatif?shard=shard-1&cluster=cluster-c&need=${NEED}`,
    'clusters',
    'clusters/cluster-a',
    'available-capacity',
  ])('%s', async (path) => {
    const { status, body } = await ask(path);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.queriedAt).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    const [route, search] = path.split('?');
    const { body: wanted } = stub.plain(route ?? '', new URLSearchParams(search));
    expect(differences(wanted, body, route ?? '')).toEqual([]);
  });

  it('explain', async () => {
    const { body } = await ask('needs?shard=shard-0');
    const unmet = (body.needs as { satisfied: boolean; clusterId: string; profileFingerprint: string }[]).find(
      (one) => !one.satisfied,
    );
    const search = `shard=shard-0&cluster=${unmet?.clusterId}&fingerprint=${encodeURIComponent(unmet?.profileFingerprint ?? '')}`;
    const explained = await ask(`explain?${search}`);
    const { body: wanted } = stub.plain('explain', new URLSearchParams(search));
    expect(differences(wanted, explained.body, 'explain')).toEqual([]);
  });

  it('one machine', async () => {
    const { body } = await ask('machines?shard=shard-0&state=configured&limit=1');
    const id = (body.machines as { id: string }[])[0]?.id ?? '';
    const machine = await ask(`machines/shard-0/${id}`);
    const { body: wanted } = stub.plain(`machines/shard-0/m-00003`, new URLSearchParams());
    expect(differences(wanted, machine.body, 'machine')).toEqual([]);
  });

  it('the stream', async () => {
    const controller = new AbortController();
    const response = await fetch(`${dashboard}/api/stream?topics=summary,topology,needs:shard-0`, {
      signal: controller.signal,
    });
    const heard = new Map<string, unknown>();
    let text = '';
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(part);
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const [, name] = /^event: ?(.*)$/m.exec(event) ?? [];
        const [, data] = /^data: ?(.*)$/m.exec(event) ?? [];
        if (name !== undefined && data !== undefined) heard.set(name, JSON.parse(data));
      }
      if (['summary', 'topology', 'needs:shard-0'].every((topic) => heard.has(topic))) break;
    }
    controller.abort();
    expect(differences(stub.fleet.summary('shard-0'), heard.get('summary'), 'summary')).toEqual([]);
    expect(differences(stub.fleet.topology(), heard.get('topology'), 'topology')).toEqual([]);
  });
});

it('the stub says what a live demo says', async () => {
  expect(differences(demoState(), await hand.state(), 'state')).toEqual([]);
});

it.skipIf(LOCAL)('the binary serves the app of this tree', async () => {
  for (const [url, file] of [
    [`${dashboard}/`, 'index.html'],
    [`${guide}/`, 'guide.html'],
  ] as const) {
    const served = await (await fetch(url)).text();
    const built = readFileSync(join(DIST, file), 'utf8');
    expect(served, 'build the binary again: it carries another app than ui/dist').toBe(built);
  }
});
