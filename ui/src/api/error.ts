// What went wrong with one answer, and which display that is.

export type Trouble = 'unwired' | 'denied' | 'missing' | 'refused' | 'failed';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly login: string | null = null,
  ) {
    super(message);
  }

  /** Status 0 is a server that did not answer at all. */
  get trouble(): Trouble {
    if (this.status === 503) return 'unwired';
    if (this.status === 401 || this.status === 403) return 'denied';
    if (this.status === 404) return 'missing';
    if (this.status === 400) return 'refused';
    return 'failed';
  }
}

/** Flags that a text names, for display as code. */
export function flagsIn(text: string): string[] {
  return [...new Set(text.match(/--[a-z][a-z0-9-]*/g) ?? [])];
}

/** The error of an answer that was not 200. */
export async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as { error?: unknown; login?: unknown } | null;
  const text = typeof body?.error === 'string' ? body.error : `the server answered ${response.status}`;
  return new ApiError(response.status, text, typeof body?.login === 'string' ? body.login : null);
}
