// Needs of a shard, read by the worker from a server or from the text of a recording, and directly
// where a recording has few.

import { ApiError } from '../api/error';
import { apiUrl, world } from '../api/source.svelte';
import type { Needs, NeedsHead, NeedView } from '../api/types';

export type ToWorker =
  /** `null` ends the one of this id. */
  { id: number; url: string | null } | { id: number; text: string };

export type FromWorker =
  | { id: number; slice: NeedView[] }
  | { id: number; head: NeedsHead }
  | { id: number; failed: { status: number; message: string; login: string | null } };

interface Waiting {
  needs: NeedView[];
  done: (needs: Needs) => void;
  fail: (error: ApiError) => void;
}

let worker: Worker | null = null;
let last = 0;
let before: { raw: string; needs: Needs } | null = null;
const waiting = new Map<number, Waiting>();

function started(): Worker {
  if (worker === null) {
    worker = new Worker(new URL('./fetch.worker.ts', import.meta.url), { type: 'module' });
    worker.addEventListener('message', take);
    worker.addEventListener('error', broken);
  }
  return worker;
}

function take(event: MessageEvent<FromWorker>): void {
  const message = event.data;
  const one = waiting.get(message.id);
  if (!one) return;
  if ('slice' in message) {
    for (const need of message.slice) one.needs.push(need);
    return;
  }
  waiting.delete(message.id);
  if ('head' in message) one.done({ ...message.head, needs: one.needs });
  else one.fail(new ApiError(message.failed.status, message.failed.message, message.failed.login));
}

/** One that cannot be loaded or has ended answers nobody: the next who asks begins another. */
function broken(event: ErrorEvent): void {
  worker?.terminate();
  worker = null;
  const all = [...waiting.values()];
  waiting.clear();
  for (const one of all) one.fail(new ApiError(0, `needs cannot be read: ${event.message || 'the reader is missing'}`));
}

export function fetchNeeds(path: string, signal: AbortSignal): Promise<Needs> {
  const raw = world.source.raw?.(path);
  if (!world.source.live && raw === undefined) return world.source.get(path, signal) as Promise<Needs>;
  // Many moments of a recording have the same answer.
  if (raw !== undefined && raw === before?.raw) return Promise.resolve(before.needs);
  return new Promise((resolve, fail) => {
    const done = (needs: Needs): void => {
      before = raw === undefined ? null : { raw, needs };
      resolve(needs);
    };
    const id = (last += 1);
    const target = started();
    waiting.set(id, { needs: [], done, fail });
    target.postMessage((raw === undefined ? { id, url: apiUrl(path) } : { id, text: raw }) satisfies ToWorker);
    signal.addEventListener('abort', () => {
      waiting.delete(id);
      target.postMessage({ id, url: null } satisfies ToWorker);
      fail(new ApiError(0, 'given up'));
    });
  });
}
