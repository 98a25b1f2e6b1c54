// Where answers come from: the server, or a recording that is being replayed.

import { ApiError, errorOf } from './error';
import { patient, UNANSWERED } from './patience';

export interface Source {
  /** Live sources change by themselves: only they are polled and streamed. */
  readonly live: boolean;
  get(path: string, signal: AbortSignal): Promise<unknown>;
  /** An answer that lies here as a text, too large to be read beside the page's work. */
  raw?(path: string): string | undefined;
}

/** The address of an API path under the base of the page. */
export function apiUrl(path: string): string {
  return new URL(`api/${path}`, document.baseURI).href;
}

async function answer<T>(path: string, signal: AbortSignal, read: (response: Response) => Promise<T>): Promise<T> {
  try {
    const response = await fetch(apiUrl(path), { signal: patient(signal), headers: { accept: 'application/json' } });
    if (!response.ok) throw await errorOf(response);
    return await read(response);
  } catch (error) {
    // What is not JSON did answer.
    if (signal.aborted || error instanceof ApiError || error instanceof SyntaxError) throw error;
    throw new ApiError(0, UNANSWERED);
  }
}

export const server: Source = {
  live: true,
  get: (path, signal) => answer(path, signal, (response) => response.json()),
};

/** An answer of the server as it came: for those who keep it and need not know what it says. */
export function bytes(path: string, signal: AbortSignal): Promise<Blob> {
  return answer(path, signal, (response) => response.blob());
}

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
