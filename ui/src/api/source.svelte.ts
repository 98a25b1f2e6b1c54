// Where answers come from: the server, or a recording that is being replayed.

import { ApiError, errorOf } from './error';

export interface Source {
  /** Live sources change by themselves: only they are polled and streamed. */
  readonly live: boolean;
  get(path: string, signal: AbortSignal): Promise<unknown>;
}

/** The address of an API path under the base of the page. */
export function apiUrl(path: string): string {
  return new URL(`api/${path}`, document.baseURI).href;
}

/** Longer than the server waits for its slowest source. */
const PATIENCE_MS = 75_000;

export const server: Source = {
  live: true,
  async get(path, signal) {
    let response: Response;
    try {
      response = await fetch(apiUrl(path), {
        signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
        headers: { accept: 'application/json' },
      });
    } catch (error) {
      if (signal.aborted) throw error;
      throw new ApiError(0, 'the dashboard did not answer; it is tried again');
    }
    if (!response.ok) throw await errorOf(response);
    return (await response.json()) as unknown;
  },
};

class World {
  source = $state.raw<Source>(server);
  /** Moves whenever every answer may be another: a new source, a scrubbed recording. */
  revision = $state(0);

  use(source: Source): void {
    this.source = source;
    this.revision += 1;
  }

  moved(): void {
    this.revision += 1;
  }
}

export const world = new World();
