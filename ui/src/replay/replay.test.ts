import { describe, expect, it } from 'vitest';
import type { Decisions, MachineDetail, Machines, Overview } from '../api/types';
import { decision } from '../testing';
import { rates, until } from './derive';
import { parseCsv, parseLine } from './parse';
import { load, stem, type Recorded } from './recording';
import { ReplaySource, seconds } from './source';

const AUDIT = [
  '{"time":"2026-11-16T03:12:00.000000100Z","cycle":10,"kind":"Provision","machine":"m-1","cluster":"a","reason":"phase1.speculative","grace_seconds":0,"outcome":"decided","seq":1099511627777,"need":"f","group":"","priority":100,"preemptor_priority":0,"cost":0.1,"runner_up_cost":0.38}',
  '{"time":"2026-11-16T03:12:20Z","cycle":10,"kind":"Provision","machine":"m-1","cluster":"a","reason":"phase1.speculative","grace_seconds":0,"outcome":"success","seq":1099511627778,"of":1099511627777,"need":"f","group":"","priority":100,"preemptor_priority":0,"cost":0.1,"runner_up_cost":null}',
  '{"time":"2026-11-16T03:13:00Z","cycle":16,"kind":"Reclaim","machine":"m-1","cluster":"a","reason":"phase3.excess","grace_seconds":600,"outcome":"decided","seq":1099511627779,"need":"f","group":"","priority":100,"preemptor_priority":0,"cost":0.1,"runner_up_cost":null}',
];

function file(name: string, text: string) {
  return { name, text: () => Promise.resolve(text) };
}

async function source(at: string): Promise<ReplaySource> {
  const replay = new ReplaySource(await load([file('run/shard-3.audit.jsonl', AUDIT.join('\n'))], () => {}));
  replay.at = Date.parse(at);
  return replay;
}

describe('lines', () => {
  it('of an audit log keep sequences whole', () => {
    const line = parseLine(AUDIT[1]!);
    expect(line).toMatchObject({
      kind: 'decision',
      decision: {
        sequence: '1099511627778',
        ofSequence: '1099511627777',
        cycle: 10,
        effectiveCost: 0.1,
        runnerUpCost: null,
        outcome: 'success',
      },
    });
    const big = parseLine(AUDIT[0]!.replace('1099511627777', '9223372036854775807'));
    expect(big).toMatchObject({ decision: { sequence: '9223372036854775807' } });
  });
  it('of this dashboard`s export come back as they were', () => {
    const one = decision({ sequence: '9223372036854775807', ofSequence: '5' });
    expect(parseLine(JSON.stringify(one))).toEqual({ kind: 'decision', decision: one });
  });
  it('of a text that looks like a sequence stay texts', () => {
    const line = parseLine(JSON.stringify({ ...decision(), error: 'said "seq":12' }));
    expect(line).toMatchObject({ decision: { error: 'said "seq":12' } });
  });
  it('of megabytes are read when they are asked for', async () => {
    const recorded = 'needs?limit=20000&shard=a';
    const body = { cycle: 7, needs: [{ padding: 'x'.repeat(2 << 20) }] };
    const text = JSON.stringify({ recorded, at: 1000, body });
    expect(parseLine(text)).toEqual({
      kind: 'answer',
      answer: { path: recorded, at: 1000, body: undefined, text: JSON.stringify(body) },
    });
    const replay = new ReplaySource(await load([file('r.jsonl', text)], () => {}));
    replay.at = 1000;
    expect(replay.raw(recorded)).toBe(JSON.stringify(body));
    expect(await replay.get(recorded)).toEqual(body);
    // Those of decisions are moments, and one that was cut short is none.
    const decisions = text.replace('needs?', 'decisions?');
    expect(parseLine(decisions)).toMatchObject({ answer: { body: { cycle: 7 } } });
    expect(parseLine(text.slice(0, -9))).toMatchObject({ kind: 'bad' });
  });
  it('that are neither say why', () => {
    expect(parseLine('{')).toEqual({ kind: 'bad', why: 'not JSON' });
    expect(parseLine('{"a":1}')).toMatchObject({ kind: 'bad' });
    expect(parseLine('{"kind":"Delete","time":"yesterday"}')).toMatchObject({ kind: 'bad' });
  });
});

describe('a recording', () => {
  it('has a moment for each cycle and each later outcome', async () => {
    const recording = await load([file('run/shard-3.audit.jsonl', AUDIT.join('\n'))], () => {});
    expect(recording.moments.map((moment) => moment.cycle)).toEqual([10, 10, 16]);
    expect(recording.shards).toEqual(['shard-3']);
  });
  it('counts the lines that it left out', async () => {
    const recording = await load([file('x.jsonl', `${AUDIT[0]}\nnonsense\nnonsense`)], () => {});
    expect(recording.problems).toEqual(['x.jsonl: 2 lines left out, not JSON']);
  });
  it('reads a run folder', async () => {
    const recording = await load(
      [
        file('run-7/summary.json', '{"runId":"7","passed":true}'),
        file('run-7/series.csv', 'time,machines,note\n0,5,a\n10,,b\n'),
        file('run-7/config.yaml', 'x: 1'),
      ],
      () => {},
    );
    expect(recording.summary).toEqual({ runId: '7', passed: true });
    expect(recording.series[0]).toEqual({
      name: 'run-7/series.csv',
      times: [0, 10],
      columns: [{ name: 'machines', values: [5, null] }],
    });
  });
  it('names shards after files', () => {
    expect(stem('run/shard-3.audit.jsonl')).toBe('shard-3');
    expect(stem('decisions-shard-0.jsonl')).toBe('shard-0');
    expect(stem('audit.log')).toBe('audit');
  });
  it('takes a table without times for none', () => {
    expect(parseCsv('x.csv', 'name,value\na,1\n')).toBeNull();
    expect(parseCsv('x.csv', '')).toBeNull();
  });
});

describe('a replayed moment', () => {
  it('shows the states that the log implies', async () => {
    const state = async (at: string): Promise<string | undefined> =>
      ((await (await source(at)).get('machines?shard=shard-3')) as Machines).machines[0]?.state;
    expect(await state('2026-11-16T03:11:00Z')).toBeUndefined();
    expect(await state('2026-11-16T03:12:10Z')).toBe('creating');
    expect(await state('2026-11-16T03:12:30Z')).toBe('configured');
    expect(await state('2026-11-16T03:20:00Z')).toBe('draining');
  });
  it('goes back as well as forth', async () => {
    const replay = await source('2026-11-16T03:20:00Z');
    await replay.get('machines?shard=shard-3');
    replay.at = Date.parse('2026-11-16T03:12:10Z');
    expect(((await replay.get('machines?shard=shard-3')) as Machines).machines[0]?.state).toBe('creating');
  });
  it('tells what happened to a machine', async () => {
    const detail = (await (await source('2026-11-16T03:20:00Z')).get('machines/shard-3/m-1')) as MachineDetail;
    expect(detail.transitions.map((step) => `${step.from} ${step.to} ${step.cause}`)).toEqual([
      'speculative creating decision',
      'creating configured ack',
      'configured draining decision',
    ]);
  });
  it('filters decisions as the server does', async () => {
    const replay = await source('2026-11-16T03:20:00Z');
    expect(((await replay.get('decisions?shard=shard-3&kind=Reclaim')) as Decisions).decisions).toHaveLength(1);
    expect(((await replay.get('decisions?shard=shard-9')) as Decisions).decisions).toHaveLength(0);
  });
  it('knows what it does not know', async () => {
    const replay = await source('2026-11-16T03:20:00Z');
    expect((await replay.get('fleet/overview')) as Overview).toMatchObject({
      machines: 1,
      dollarsPerHour: null,
      shortfalls: null,
    });
    await expect(replay.get('needs?shard=shard-3')).rejects.toMatchObject({ status: 503 });
  });
  it('prefers what was recorded, up to the moment', async () => {
    const line = (at: number, machines: number): string =>
      JSON.stringify({ recorded: 'fleet/overview', at, body: { machines } });
    const replay = new ReplaySource(await load([file('r.jsonl', [line(1000, 1), line(5000, 2)].join('\n'))], () => {}));
    replay.at = 4000;
    expect(await replay.get('fleet/overview')).toEqual({ machines: 1 });
    replay.at = 9000;
    expect(await replay.get('fleet/overview')).toEqual({ machines: 2 });
    replay.at = 0;
    await expect(replay.get('fleet/overview')).rejects.toMatchObject({ status: 503 });
  });
});

describe('sums over decisions', () => {
  const all: Recorded[] = [0, 30, 60].map((at) => ({ ...decision({ timeUnixNanos: (1000 + at) * 1e9 }), shard: 's' }));
  it('end at the moment', () => {
    expect(until(all, 1_030_000)).toBe(2);
    expect(until(all, 0)).toBe(0);
    expect(until(all, 9e9)).toBe(3);
  });
  it('are rates in equal steps', () => {
    const { timestamps, kinds, values } = rates(all, 1_060_000, 120, 60);
    expect(kinds).toEqual(['Bootstrap']);
    expect(timestamps).toHaveLength(2);
    expect((values[0] ?? []).reduce((sum, value) => sum + value * 60, 0)).toBeCloseTo(3);
  });
  it('read durations', () => {
    expect([seconds('90s', 1), seconds('15m', 1), seconds('1h', 1), seconds('30d', 1), seconds('x', 7)]).toEqual([
      90, 900, 3600, 2_592_000, 7,
    ]);
  });
});

describe('machines of a recording', () => {
  const row = { id: 'm-1', state: 'configured', instanceType: 'p5', cluster: 'a', lastError: '' };
  async function recorded(next: string | null): Promise<ReplaySource> {
    const answer = {
      recorded: 'machines?limit=500&shard=shard-3',
      at: 1000,
      body: { shard: 'shard-3', cycle: 9, total: 900, next, machines: [row] },
    };
    const log = [file('r.jsonl', JSON.stringify(answer)), file('run/shard-3.audit.jsonl', AUDIT.join('\n'))];
    const replay = new ReplaySource(await load(log, () => {}));
    replay.at = Date.parse('2026-11-16T03:20:00Z');
    return replay;
  }
  it('are as they were recorded, with the transitions of the log', async () => {
    const detail = (await (await recorded(null)).get('machines/shard-3/m-1')) as MachineDetail;
    expect(detail.machine.instanceType).toBe('p5');
    expect(detail.transitions).toHaveLength(3);
  });
  it('are counted only where all of them are there', async () => {
    const path = 'machines?limit=500&shard=shard-3&state=configured';
    expect(await (await recorded(null)).get(path)).toMatchObject({ total: 1, cycle: 9, machines: [row] });
    expect(await (await recorded('m-1')).get(path)).toMatchObject({ total: null, machines: [row] });
  });
  it.each(['machines?shard=shard-3&page=m-1', 'machines?shard=shard-3&node=ip-10', 'topology?domainsPage=rack-9'])(
    'say that %s was not recorded',
    async (path) => {
      await expect((await recorded('m-1')).get(path)).rejects.toMatchObject({ status: 503 });
    },
  );
});
