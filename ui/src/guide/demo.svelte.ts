// The demo as the page knows it: one stream, or polls where the stream is full, and writes.

import { apiUrl } from '../api/source.svelte';
import type { DemoDecision, Moving, State } from './types';

const KEPT = 60;
const POLL_MS = 2000;
const HEARTBEAT_MS = 30_000;
/** What takes longer does not come. */
const PATIENCE_MS = 15_000;
const KEY = 'bigfleet-demo-session';

class Demo {
  state = $state.raw<State | null>(null);
  decisions = $state.raw<DemoDecision[]>([]);
  /** By the steady clock; how long nothing was heard is shown. */
  heardAt = $state(0);
  /** Why nothing is shown, or why the last wish was not granted. */
  trouble = $state<string | null>(null);
  refused = $state<string | null>(null);
  ended = $state(false);
  private session: string | null = null;
  private source: EventSource | null = null;
  private poll: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    try {
      this.session = sessionStorage.getItem(KEY);
    } catch {
      // Then each visit is a session of its own.
    }
    document.addEventListener('visibilitychange', () => this.follow());
    setInterval(() => {
      if (this.state?.demo.hosted && !this.ended && document.visibilityState !== 'hidden')
        void this.post('heartbeat', {}, true);
    }, HEARTBEAT_MS);
  }

  async start(): Promise<void> {
    await this.load();
    this.follow();
  }

  private follow(): void {
    this.source?.close();
    this.source = null;
    clearTimeout(this.poll);
    if (document.visibilityState === 'hidden' || this.ended) return;
    const query = this.session === null ? '' : `?session=${encodeURIComponent(this.session)}`;
    const source = new EventSource(apiUrl(`stream${query}`));
    this.source = source;
    source.addEventListener('state', (event) => this.moved(JSON.parse((event as MessageEvent<string>).data) as Moving));
    source.addEventListener('decisions', (event) => {
      const { decisions } = JSON.parse((event as MessageEvent<string>).data) as { decisions: DemoDecision[] };
      this.heardAt = performance.now();
      this.keep(decisions);
    });
    // A full or broken stream: ask until there is one again.
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return;
      this.poll = setTimeout(() => void this.load().then(() => this.follow()), POLL_MS);
    };
  }

  private moved(state: Moving): void {
    this.heardAt = performance.now();
    this.trouble = null;
    if (this.state === null) void this.load();
    else this.state = { ...this.state, ...state };
  }

  /** Oldest first. */
  private keep(fresh: DemoDecision[]): void {
    const all = new Map(
      [...[...this.decisions].reverse(), ...fresh].map((one) => [`${one.shard} ${one.sequence}`, one]),
    );
    this.decisions = [...all.values()]
      .sort((a, b) => b.atUnixMs - a.atUnixMs || b.sequence - a.sequence)
      .slice(0, KEPT);
  }

  private headers(): Record<string, string> {
    return this.session === null ? {} : { authorization: `Bearer ${this.session}` };
  }

  private async load(again = true): Promise<void> {
    try {
      // A browser may keep a 410 for ever, and then tells it of the next session, too.
      const response = await fetch(apiUrl('state'), { cache: 'no-store', headers: this.headers(), signal: patient() });
      if (response.status === 401 && again) {
        // Where none can be had, the reason and when to try again stay in sight.
        if (await this.begin()) await this.load(false);
        return;
      }
      if (!response.ok) {
        if (response.status === 410) this.end();
        else this.trouble = await words(response);
        return;
      }
      const state = (await response.json()) as State;
      this.state = state;
      this.heardAt = performance.now();
      this.trouble = null;
      this.keep([...state.decisions].reverse());
    } catch {
      this.trouble = 'the demo does not answer; is it still running?';
    }
  }

  /** A session of a hosted demo. */
  private async begin(): Promise<boolean> {
    const response = await fetch(apiUrl('session'), { method: 'POST', signal: patient() });
    if (response.status !== 201) {
      this.trouble = await words(response);
      return false;
    }
    this.session = ((await response.json()) as { session: string }).session;
    try {
      sessionStorage.setItem(KEY, this.session);
    } catch {
      // As above.
    }
    return true;
  }

  /** The secret is of no more use: the next visit begins anew. */
  private end(): void {
    this.ended = true;
    this.trouble = this.refused = null;
    this.follow();
    try {
      sessionStorage.removeItem(KEY);
    } catch {
      // As above.
    }
  }

  /** Another session; nothing of the one before is left in it. */
  async renew(): Promise<void> {
    this.ended = false;
    this.session = null;
    this.state = null;
    this.decisions = [];
    this.trouble = this.refused = null;
    await this.start();
  }

  async post(path: string, body: object, quiet = false): Promise<void> {
    if (!quiet) this.refused = null;
    try {
      const response = await fetch(apiUrl(path), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...this.headers() },
        body: JSON.stringify(body),
        signal: patient(),
      });
      if (response.status === 410) this.end();
      else if (!response.ok && !quiet) this.refused = await words(response);
    } catch {
      if (!quiet) this.refused = 'the demo does not answer';
    }
  }
}

function patient(): AbortSignal {
  return AbortSignal.timeout(PATIENCE_MS);
}

async function words(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as { error?: string } | null;
  const later = response.headers.get('retry-after');
  return (body?.error ?? `the demo answered ${response.status}`) + (later ? `; try again in ${later} s` : '');
}

export const demo = new Demo();
