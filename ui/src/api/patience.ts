// How long an answer is waited for.

/** Longer than the server waits for its slowest source. */
const PATIENCE_MS = 75_000;

export const UNANSWERED = 'the dashboard did not answer; it is tried again';

/** Ends with that of the asker, or when an answer is not to be expected any more. */
export function patient(signal?: AbortSignal): AbortSignal {
  const late = AbortSignal.timeout(PATIENCE_MS);
  return signal ? AbortSignal.any([signal, late]) : late;
}
