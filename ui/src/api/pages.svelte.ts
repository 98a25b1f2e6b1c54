// A list that the server pages. What was loaded is read again with every refresh, so that no row
// is older than the panel says and none vanishes under the reader.

import { live, type Live, type LiveOptions } from './live.svelte';
import { patient } from './patience';
import { world } from './source.svelte';

export interface Paging<T> {
  /** Where the next page begins; `null` at the end. */
  next: (data: T) => string | null;
  /** The path of the page that begins there. */
  page: (path: string, cursor: string) => string;
  /** Both, with the age and the rest of the first. */
  join: (first: T, further: T) => T;
}

export class Pages<T> {
  trouble = $state<string | null>(null);
  /** Pages that are loaded. */
  count = 1;

  constructor(
    readonly live: Live<T>,
    private readonly paging: Paging<T>,
    private readonly path: () => string | null,
  ) {}

  get cursor(): string | null {
    return this.live.data === null ? null : this.paging.next(this.live.data);
  }

  async more(): Promise<void> {
    const [path, cursor] = [this.path(), this.cursor];
    if (path === null || cursor === null) return;
    this.trouble = null;
    try {
      const page = (await world.source.get(this.paging.page(path, cursor), patient())) as T;
      // A refresh in between may have moved the end, another question has its own.
      if (path !== this.path() || this.live.data === null || cursor !== this.cursor) return;
      this.live.data = this.paging.join(this.live.data, page);
      this.count += 1;
    } catch (error) {
      this.trouble = (error as Error).message;
    }
  }
}

/** To be called while a component is set up. */
export function paged<T>(path: () => string | null, paging: Paging<T>, options: LiveOptions<T>): Pages<T> {
  let asked: string | null = null;
  const answer = live<T>(path, {
    ...options,
    fetch: async (path, signal) => {
      if (path !== asked) {
        asked = path;
        pages.count = 1;
        pages.trouble = null;
      }
      let all = (await world.source.get(path, signal)) as T;
      for (let read = 1; read < pages.count; read += 1) {
        const cursor = paging.next(all);
        if (cursor === null) break;
        all = paging.join(all, (await world.source.get(paging.page(path, cursor), signal)) as T);
      }
      return all;
    },
  });
  const pages = new Pages<T>(answer, paging, path);
  return pages;
}
