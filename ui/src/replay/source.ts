// Answers of the API at one moment of a recording: recorded ones where there are, else what the
// decisions imply, else a word on what is missing.

import { ApiError } from '../api/error';
import type { Source } from '../api/source.svelte';
import type { Machines as MachinesAnswer, MachineView } from '../api/types';
import { parseQuery, type Query } from '../route/url';
import { Machines, rates, until } from './derive';
import { bodyOf, type RecordedAnswer } from './parse';
import type { Recorded, Recording } from './recording';

export class ReplaySource implements Source {
  readonly live = false;
  /** Milliseconds since the epoch. */
  at = 0;
  private machines: Machines;

  constructor(private readonly recording: Recording) {
    this.machines = new Machines(recording.decisions);
  }

  async get(path: string): Promise<unknown> {
    const recorded = this.recorded(path);
    if (recorded !== undefined) return recorded;
    const [route = '', search = ''] = path.split('?');
    const derived = this.derive(route, parseQuery(search));
    if (derived === undefined) throw new ApiError(503, this.missing(route));
    return { queriedAt: new Date(this.at).toISOString(), ...derived };
  }

  raw(path: string): string | undefined {
    return this.newest(path)?.text;
  }

  private newest(path: string): RecordedAnswer | undefined {
    return this.recording.answers.get(path)?.findLast((one) => one.at <= this.at);
  }

  private recorded(path: string): unknown {
    const answer = this.newest(path);
    if (answer?.error) throw new ApiError(answer.error.status, answer.error.message);
    return answer === undefined ? undefined : bodyOf(answer);
  }

  private missing(route: string): string {
    const what =
      this.recording.decisions.length > 0 ? 'a decision log tells what was done' : 'this recording holds other answers';
    return `not in the recording at this moment: ${what}, and /${route} needs more; a recording made on the Replay screen holds every screen`;
  }

  private upTo(shard?: string): Recorded[] {
    const all = this.recording.decisions.slice(0, until(this.recording.decisions, this.at));
    return shard === undefined ? all : all.filter((one) => one.shard === shard);
  }

  private derive(route: string, query: Query): object | undefined {
    if (route === 'config') return CONFIG;
    if (route === 'topology') return query.domainsPage ? undefined : this.topology();
    if (route.startsWith('machines/')) return this.machine(route);
    if (route === 'machines') return this.machineList(query);
    if (this.recording.decisions.length === 0) return undefined;
    if (route === 'decisions') return this.decisions(query);
    if (route === 'fleet/overview') return this.overview();
    if (route === 'fleet/actions')
      return { ...AGELESS, ...this.rates(this.upTo(), query), stepSeconds: seconds(query.step, 30) };
    if (route === 'shards') return { ...AGELESS, shards: this.recording.shards.map((pod) => this.shardRow(pod)) };
    if (route === 'finops/savings') return this.savings(query);
    const pod = /^shards\/([^/]+)(\/trends)?$/.exec(route);
    if (pod?.[1] === undefined) return undefined;
    return this.shard(decodeURIComponent(pod[1]), pod[2] !== undefined, query);
  }

  private topology(): object {
    return {
      coordinator: {
        raftTerm: null,
        applyRatePerSec: null,
        applyErrorRatePerSec: null,
        pendingInstructionsTotal: null,
        lastExportUnixSeconds: null,
        transfersByPhase: null,
        recovering: null,
        leaderId: null,
      },
      replicas: [],
      shards: this.recording.shards.map((shardId) => ({
        shardId,
        address: '',
        registeredAtUnixNs: null,
        lastHeartbeatUnixNs: null,
      })),
      domainAssignments: [],
      domainsNext: null,
      quotas: [],
      providers: [],
      rebuilding: false,
      warnings: ['a recording: the shards are those that it names'],
    };
  }

  private decisions(query: Query): object {
    const kinds = query.kind ? query.kind.split(',') : null;
    const all = this.upTo(query.shard).filter(
      (one) =>
        (kinds === null || kinds.includes(one.kind)) &&
        (!query.cluster || one.clusterId === query.cluster) &&
        (!query.machine || one.machineId === query.machine) &&
        (!query.outcome || one.outcome === query.outcome) &&
        (!query.minPriority || one.priority >= Number(query.minPriority)),
    );
    const limit = Number(query.limit ?? 500);
    const decisions = query.after === '-1' ? all : all.slice(-limit);
    return { shard: query.shard ?? '', decisions, next: decisions.at(-1)?.sequence ?? '0', more: false, gap: false };
  }

  private known(shard?: string): { shard: string; view: MachineView; transitions: unknown[] }[] {
    const all = [...this.machines.at(until(this.recording.decisions, this.at)).values()];
    return shard === undefined ? all : all.filter((one) => one.shard === shard);
  }

  private machine(route: string): object | undefined {
    const [, shard = '', id = ''] = route.split('/').map(decodeURIComponent);
    const found = this.known(shard).find((one) => one.view.id === id);
    // A recorded row says more than the log implies.
    const machine = this.recordedMachines(shard)?.rows.find((one) => one.id === id) ?? found?.view;
    return machine ? { shard, machine: { ...machine }, transitions: [...(found?.transitions ?? [])] } : undefined;
  }

  /** Rows of the newest recorded list of this shard, whatever else was filtered then. */
  private recordedMachines(shard: string | undefined): RecordedMachines | undefined {
    let newest: RecordedAnswer | undefined;
    for (const [path, list] of this.recording.answers) {
      if (!path.startsWith('machines?')) continue;
      const query = parseQuery(path.slice('machines'.length));
      const plain = Object.keys(query).every((name) => name === 'shard' || name === 'limit');
      const answer = plain && query.shard === shard ? list.findLast((one) => one.at <= this.at) : undefined;
      if (answer && !answer.error && (!newest || answer.at > newest.at)) newest = answer;
    }
    if (newest === undefined) return undefined;
    const body = bodyOf(newest) as MachinesAnswer;
    return { rows: body.machines, more: (body.next ?? null) !== null, cycle: body.cycle };
  }

  private machineList(query: Query): object | undefined {
    // Which node a machine became, and what lay on further pages, was not recorded.
    if (query.node || query.page) return undefined;
    const recorded = this.recordedMachines(query.shard);
    const rows =
      recorded?.rows ??
      (this.recording.decisions.length > 0 ? this.known(query.shard).map((one) => ({ ...one.view })) : undefined);
    if (!rows) return undefined;
    const states = query.state ? query.state.split(',') : null;
    const machines = rows
      .filter(
        (one) =>
          (states === null || states.includes(one.state)) &&
          (!query.cluster || one.cluster === query.cluster) &&
          (!query.type || one.instanceType === query.type) &&
          (!query.zone || one.zone === query.zone) &&
          (!query.prefix || one.id.startsWith(query.prefix)) &&
          (!query.hostRef || one.hostRef === query.hostRef) &&
          (query.withError !== 'true' || one.lastError !== ''),
      )
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const last = this.upTo(query.shard).at(-1);
    // Of more machines than were recorded nobody knows how many match.
    const total = recorded?.more ? null : machines.length;
    return { shard: query.shard ?? '', cycle: recorded?.cycle ?? last?.cycle ?? 1, total, next: null, machines };
  }

  private byState(shard?: string): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { view } of this.known(shard)) counts[view.state] = (counts[view.state] ?? 0) + 1;
    return counts;
  }

  private overview(): object {
    const machinesByState = this.byState();
    return {
      ...AGELESS,
      shards: this.recording.shards.length,
      clusters: new Set(
        this.upTo()
          .map((one) => one.clusterId)
          .filter((id) => id !== ''),
      ).size,
      machines: Object.values(machinesByState).reduce((sum, n) => sum + n, 0),
      machinesByState,
      machinesByCapacityType: null,
      shortfalls: null,
      needsUnmetByReason: null,
      cycleP99Seconds: null,
      dollarsPerHour: null,
    };
  }

  private shardRow(pod: string): object {
    const machines = this.known(pod).length;
    return {
      pod,
      cycleP99Seconds: null,
      machines,
      shortfalls: null,
      activeSessions: null,
      dollarsPerHour: null,
      paused: null,
      fenced: null,
      live: null,
    };
  }

  private shard(pod: string, trends: boolean, query: Query): object {
    const all = this.upTo(pod);
    if (!trends) {
      return {
        ...AGELESS,
        ...this.shardRow(pod),
        cycleP99ByPhaseSeconds: null,
        machinesByState: this.byState(pod),
        machinesByCapacityType: null,
        machinesByStateAndType: null,
        actionsByKindRatePerSec: null,
        occCommittedPerSec: null,
        occConflictPerSec: null,
      };
    }
    const { timestamps, kinds, values } = this.rates(all, query);
    return {
      ...AGELESS,
      pod,
      timestamps,
      cycleP99Seconds: timestamps.map(() => null),
      actionRates: Object.fromEntries(kinds.map((kind, index) => [kind, values[index]])),
      machinesByState: {},
      shortfalls: [],
      dollarsPerHour: [],
      stepSeconds: seconds(query.step, 30),
    };
  }

  private rates(all: Recorded[], query: Query): ReturnType<typeof rates> {
    return rates(all, this.at, seconds(query.duration, 3600), seconds(query.step, 30));
  }

  private savings(query: Query): object {
    const all = this.upTo(query.shard).filter((one) => one.ofSequence === null);
    const rows = all
      .filter((one) => one.effectiveCost !== null && one.runnerUpCost !== null)
      .map((one) => ({
        sequence: one.sequence,
        timeUnixNanos: one.timeUnixNanos,
        cycle: one.cycle,
        kind: one.kind,
        machineId: one.machineId,
        clusterId: one.clusterId,
        reason: one.reason,
        cost: one.effectiveCost ?? 0,
        runnerUpCost: one.runnerUpCost ?? 0,
        savedPerHour: (one.runnerUpCost ?? 0) - (one.effectiveCost ?? 0),
      }))
      .reverse();
    return {
      shard: query.shard ?? '',
      decisions: all.length,
      compared: rows.length,
      savedPerHour: rows.reduce((sum, row) => sum + row.savedPerHour, 0),
      gap: false,
      rows,
    };
  }
}

interface RecordedMachines {
  rows: MachineView[];
  /** The shard had more. */
  more: boolean;
  /** Of the shard then: 0 before its first. */
  cycle: number;
}

const AGELESS = { sampledAtUnixNanos: null, scrapeIntervalSeconds: null };

const CONFIG = {
  grafanaUrl: '',
  prometheusWired: false,
  coordinatorWired: false,
  kubeconfigWired: false,
  plaintext: false,
  openToNetwork: false,
  authMode: 'none',
  viewer: null,
  logout: null,
  version: 'recording',
};

/** Seconds of `90s`, `15m`, `1h`, `30d`. */
export function seconds(text: string | undefined, fallback: number): number {
  const match = /^(\d+)([smhd]?)$/.exec(text ?? '');
  if (!match) return fallback;
  return Number(match[1]) * ({ s: 1, m: 60, h: 3600, d: 86_400 }[match[2] || 's'] ?? 1);
}
