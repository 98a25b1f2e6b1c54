// One event stream for the whole page, with the topics that somebody wants at the moment. Where
// it cannot be had, `carries` is false and whoever asked polls.

import { SvelteMap } from 'svelte/reactivity';
import { Failing, type Notice } from './failing';
import { now } from './now.svelte';
import { apiUrl, world } from './source.svelte';

export type StreamState = 'idle' | 'connecting' | 'open' | 'polling';

/** After a stream that could not be opened. */
const RETRY_MS = 30_000;
/** The server's heartbeat comes every 10 s. */
const SILENT_MS = 25_000;

type Listener = (event: unknown) => void;

class Stream {
  state = $state<StreamState>('idle');
  /** When anything last came, by the steady clock: what did not come since has not changed. */
  aliveAt = $state(0);
  /** How far the server's clock is ahead of this one, in milliseconds. */
  ahead = 0;
  private failing = new Failing(new SvelteMap());
  private listeners = new Map<string, Set<Listener>>();
  private source: EventSource | null = null;
  private topics = '';
  private lastId = '';
  private pending: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    setInterval(() => {
      const silent = this.source !== null && performance.now() - this.aliveAt > SILENT_MS;
      if (silent && now.visible) this.lost();
    }, 5000);
  }

  /** Whether news of this topic arrive by themselves; of one shard, where one is meant. */
  carries(topic: string, shard: string | null = null): boolean {
    return this.state === 'open' && !this.failing.has(topic, shard);
  }

  /** Shards of which a topic does not tell, while it tells of the others. */
  silent(topic: string): string[] {
    return this.state === 'open' ? this.failing.shards(topic) : [];
  }

  subscribe(topic: string, listener: Listener): () => void {
    let set = this.listeners.get(topic);
    if (!set) this.listeners.set(topic, (set = new Set()));
    set.add(listener);
    this.schedule();
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.listeners.get(topic) === set) this.listeners.delete(topic);
      this.schedule();
    };
  }

  /** Screens change topics in bursts: one connection for what is left after it. */
  private schedule(): void {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.settle(), 60);
  }

  private settle(): void {
    const hidden = document.visibilityState === 'hidden';
    // Who is not seen does not subscribe.
    const wanted = !world.source.live ? '' : [...this.listeners.keys()].sort().join(',');
    if (wanted === this.topics && (this.source !== null || wanted === '')) return;
    if (wanted === this.topics && this.state === 'polling') return;
    this.close();
    // Places in the stream of other topics mean nothing here.
    if (wanted !== this.topics && wanted !== '' && this.topics !== '') this.lastId = '';
    if (wanted === '') {
      this.state = 'idle';
      // A hidden tab comes back to where it was; a screen without topics has left.
      if (!hidden) this.topics = this.lastId = '';
      return;
    }
    this.topics = wanted;
    this.open(wanted);
  }

  private open(topics: string): void {
    this.state = 'connecting';
    // Who comes back is not told again what has failed since before.
    if (this.lastId === '') this.failing.clear();
    this.aliveAt = performance.now();
    const resume = this.lastId === '' ? '' : `&lastEventId=${encodeURIComponent(this.lastId)}`;
    const source = new EventSource(apiUrl(`stream?topics=${encodeURIComponent(topics)}${resume}`));
    this.source = source;
    source.onopen = () => {
      this.aliveAt = performance.now();
      this.state = 'open';
    };
    source.onerror = () => {
      // The browser reconnects by itself unless the server refused.
      if (source.readyState === EventSource.CLOSED) this.lost();
      else this.state = 'polling';
    };
    const named = (name: string, take: (data: unknown) => void): void => {
      source.addEventListener(name, (event) => {
        this.aliveAt = performance.now();
        const message = event as MessageEvent<string>;
        if (message.lastEventId) this.lastId = message.lastEventId;
        take(JSON.parse(message.data));
      });
    };
    for (const topic of topics.split(',')) {
      named(topic, (data) => {
        this.failing.news(topic, data);
        this.listeners.get(topic)?.forEach((listener) => listener(data));
      });
    }
    named('heartbeat', (data) => {
      const { nowUnixNanos } = data as { nowUnixNanos?: number };
      if (nowUnixNanos !== undefined) this.ahead = nowUnixNanos / 1e6 - Date.now();
    });
    named('reset', () => {
      this.lastId = '';
      world.moved();
    });
    named('source', (data) => this.failing.hear(data as Notice));
  }

  private lost(): void {
    this.close();
    this.state = 'polling';
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      if (this.state === 'polling') {
        this.state = 'idle';
        this.settle();
      }
    }, RETRY_MS);
  }

  private close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }
}

export const stream = new Stream();
