// One answer that keeps itself current while somebody looks at it.

import { untrack } from 'svelte';
import { ApiError } from './error';
import { recorder } from '../replay/recorder.svelte';
import { now } from './now.svelte';
import { world } from './source.svelte';
import { stream } from './stream.svelte';

export class Live<T> {
  data = $state.raw<T | null>(null);
  error = $state.raw<ApiError | null>(null);
  /** When `data` was here, by the steady clock. */
  receivedAt = $state(0);
  busy = $state(false);
  /** The topic that would tell of a change. */
  topic = $state<string | null>(null);
  /** The shard that is asked, where it is one. */
  shard = $state<string | null>(null);
  refresh: () => void = () => {};

  /** Nothing is known yet, good or bad. */
  get loading(): boolean {
    return this.data === null && this.error === null;
  }

  /** Whether news of it arrive by themselves. */
  get carried(): boolean {
    return this.topic !== null && stream.carries(this.topic, this.shard);
  }

  /** Until when `data` is known to hold: while its topic is carried, silence means no change. */
  get confirmedAt(): number {
    return this.carried ? Math.max(this.receivedAt, stream.aliveAt) : this.receivedAt;
  }

  take(data: T): void {
    this.data = data;
    this.error = null;
    this.receivedAt = performance.now();
  }
}

export interface LiveOptions<T> {
  /** Seconds between two polls; 0 asks once. May depend on what was answered. */
  every: number | ((data: T | null) => number);
  /** While this topic arrives, the stream says when to look again. */
  topic?: () => string | null;
  /** The topic tells something with every cycle: its silence is a reason to ask. */
  beats?: boolean;
  /** What an event of the topic means; without it, it means to ask again. */
  onEvent?: (event: unknown, into: Live<T>) => void;
  /** Keeps the last answer while another path is asked: for filters within one view. Another shard is another view. */
  keep?: boolean;
  /** An answer that is not whole is asked for again although its topic arrives: news do not fill its holes. */
  whole?: (data: T) => boolean;
  /** Seconds that at least lie between two answers, however fast events come. */
  gap?: () => number;
  /** How to ask, where that is not one JSON answer. */
  fetch?: (path: string, signal: AbortSignal) => Promise<T>;
}

/** To be called while a component is set up. `path` is relative to the API; `null` asks nothing. */
export function live<T>(path: () => string | null, options: LiveOptions<T>): Live<T> {
  const result = new Live<T>();
  let asked: string | null = null;
  /** What `data` is the answer to. */
  let answered: string | null = null;
  const every = (): number => (typeof options.every === 'number' ? options.every : options.every(result.data));

  $effect(() => {
    const target = path();
    const source = world.source;
    void world.revision;
    const topic = source.live ? (options.topic?.() ?? null) : null;
    const visible = now.visible;
    untrack(() => {
      result.topic = topic;
      result.shard = shardOf(target);
    });
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let eventTimer: ReturnType<typeof setTimeout> | undefined;
    let running = false;

    // Read when the timer fires and not before: a stream that opens must not ask everything twice.
    const later = (): void => {
      if (!source.live || every() <= 0 || controller.signal.aborted) return;
      timer = setTimeout(() => {
        // News come to who knows the rest: an answer that failed is asked for again.
        const whole = result.data === null || (options.whole?.(result.data) ?? true);
        if (result.error === null && whole && result.carried && !options.beats) later();
        else void ask();
      }, every() * 1000);
    };

    if (target !== asked) {
      untrack(() => {
        if (!options.keep || target === null || shardOf(target) !== shardOf(asked)) result.data = null;
        result.error = null;
      });
    }
    asked = target;

    const ask = async (): Promise<void> => {
      if (target === null || running) return;
      running = true;
      clearTimeout(timer);
      result.busy = true;
      try {
        const fetch = options.fetch ?? ((path, signal) => source.get(path, signal) as Promise<T>);
        const data = await fetch(target, controller.signal);
        if (controller.signal.aborted) return;
        result.take(data);
        answered = target;
        if (source.live) recorder.note(target, data);
      } catch (error) {
        if (controller.signal.aborted) return;
        // What was kept belongs to another question, and that one is not asked any more.
        if (answered !== target) result.data = null;
        result.error = error instanceof ApiError ? error : new ApiError(0, String(error));
      } finally {
        if (!controller.signal.aborted) result.busy = false;
        running = false;
        later();
      }
    };

    let unsubscribe = (): void => {};
    if (visible || untrack(() => result.loading)) {
      result.refresh = () => void ask();
      void ask();
      if (topic !== null && visible) {
        const onEvent = options.onEvent;
        unsubscribe = stream.subscribe(topic, (event) => {
          if (onEvent) return onEvent(event, result);
          clearTimeout(eventTimer);
          const due = result.receivedAt + (options.gap?.() ?? 0) * 1000 - performance.now();
          eventTimer = setTimeout(ask, Math.max(0, due));
        });
      }
    }
    return () => {
      clearTimeout(timer);
      clearTimeout(eventTimer);
      controller.abort();
      unsubscribe();
    };
  });
  return result;
}

function shardOf(path: string | null): string | null {
  return new URLSearchParams(path?.split('?')[1] ?? '').get('shard');
}
