// Tens of megabytes of needs are read and parsed here, beside the page, and handed over in
// slices, so that the page never stalls.

import { errorOf } from '../api/error';
import { patient, UNANSWERED } from '../api/patience';
import type { Needs } from '../api/types';
import type { FromWorker, ToWorker } from './fetch';

/** Small enough that taking one over is a few milliseconds. */
const SLICE = 250;

const running = new Map<number, AbortController>();

function post(message: FromWorker): void {
  postMessage(message);
}

addEventListener('message', (event: MessageEvent<ToWorker>) => {
  const { id, url } = event.data;
  if (url === null) {
    running.get(id)?.abort();
    running.delete(id);
    return;
  }
  const controller = new AbortController();
  running.set(id, controller);
  void read(id, url, controller.signal).finally(() => running.delete(id));
});

async function read(id: number, url: string, signal: AbortSignal): Promise<void> {
  try {
    const response = await fetch(url, { signal: patient(signal), headers: { accept: 'application/json' } });
    if (!response.ok) {
      const { status, message, login } = await errorOf(response);
      post({ id, failed: { status, message, login } });
      return;
    }
    const { needs, ...head } = (await response.json()) as Needs;
    for (let from = 0; from < needs.length; from += SLICE) {
      if (signal.aborted) return;
      post({ id, slice: needs.slice(from, from + SLICE) });
    }
    post({ id, head });
  } catch {
    if (!signal.aborted) post({ id, failed: { status: 0, message: UNANSWERED, login: null } });
  }
}
