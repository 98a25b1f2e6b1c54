// Tens of megabytes of needs are read and parsed here, beside the page, and handed over in
// slices, so that the page never stalls.

import { ApiError, errorOf } from '../api/error';
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
  const { id } = event.data;
  if ('url' in event.data && event.data.url === null) {
    running.get(id)?.abort();
    running.delete(id);
    return;
  }
  const controller = new AbortController();
  running.set(id, controller);
  void read(event.data, controller.signal).finally(() => running.delete(id));
});

async function read(asked: ToWorker, signal: AbortSignal): Promise<void> {
  const { id } = asked;
  try {
    const body = 'text' in asked ? JSON.parse(asked.text) : await answer(asked.url ?? '', signal);
    const { needs, ...head } = body as Needs;
    for (let from = 0; from < needs.length; from += SLICE) {
      if (signal.aborted) return;
      post({ id, slice: needs.slice(from, from + SLICE) });
    }
    post({ id, head });
  } catch (error) {
    if (signal.aborted) return;
    const { status, message, login } = error instanceof ApiError ? error : new ApiError(0, wrong(asked));
    post({ id, failed: { status, message, login } });
  }
}

function wrong(asked: ToWorker): string {
  return 'text' in asked ? 'the recording is damaged here' : UNANSWERED;
}

async function answer(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { signal: patient(signal), headers: { accept: 'application/json' } });
  if (!response.ok) throw await errorOf(response);
  return response.json();
}
