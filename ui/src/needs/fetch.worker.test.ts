import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FromWorker, ToWorker } from './fetch';

describe('the worker that reads needs', () => {
  let hear: (message: ToWorker) => void;
  let late: AbortController;
  const said: FromWorker[] = [];

  beforeEach(async () => {
    said.length = 0;
    late = new AbortController();
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => late.signal);
    vi.stubGlobal('postMessage', (message: FromWorker) => said.push(message));
    vi.stubGlobal('addEventListener', (_: string, take: (event: { data: ToWorker }) => void) => {
      hear = (data) => take({ data });
    });
    vi.resetModules();
    await import('./fetch.worker');
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  function hanging(): void {
    vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
      return new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason as Error)));
    });
  }

  it('gives up on a server that does not answer, and says so', async () => {
    hanging();
    hear({ id: 1, url: 'needs' });
    late.abort();
    await vi.waitFor(() => expect(said).toHaveLength(1));
    expect(said[0]).toMatchObject({ id: 1, failed: { status: 0 } });
  });
  it('says nothing to who does not ask any more', async () => {
    hanging();
    hear({ id: 1, url: 'needs' });
    hear({ id: 1, url: null });
    await new Promise((resolve) => setTimeout(resolve));
    expect(said).toEqual([]);
  });
  it('hands needs over in slices, and the head last', async () => {
    const needs = Array.from({ length: 600 }, (_, index) => ({ index }));
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ cycle: 7, needs }))));
    hear({ id: 3, url: 'needs' });
    await vi.waitFor(() => expect(said.at(-1)).toEqual({ id: 3, head: { cycle: 7 } }));
    expect(said.map((one) => ('slice' in one ? one.slice.length : 0))).toEqual([250, 250, 100, 0]);
  });
  it('reads the text of a recording, or says that it cannot', async () => {
    hear({ id: 4, text: JSON.stringify({ cycle: 8, needs: [{}] }) });
    await vi.waitFor(() =>
      expect(said).toEqual([
        { id: 4, slice: [{}] },
        { id: 4, head: { cycle: 8 } },
      ]),
    );
    hear({ id: 5, text: '{"cycle":8,"needs":[' });
    await vi.waitFor(() =>
      expect(said.at(-1)).toMatchObject({ id: 5, failed: { message: 'the recording is damaged here' } }),
    );
  });
});
