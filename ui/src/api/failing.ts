// Which topics of the stream fail, and of which shard: what fails has to be asked for, and only that.

/** A `source` event. */
export interface Notice {
  topic: string;
  /** Without it, all of the topic. */
  shard?: string | null;
  state: string;
  error?: string | null;
}

export class Failing {
  /** The words of each; the page gives one that it can watch. */
  constructor(private readonly words: Map<string, string> = new Map()) {}

  hear({ topic, shard, state, error }: Notice): void {
    if (state === 'ok') this.words.delete(key(topic, shard));
    else this.words.set(key(topic, shard), error ?? 'the source failed');
  }

  /** Who tells something does not fail, whatever was heard last. */
  news(topic: string, event: unknown): void {
    if (this.words.size === 0) return;
    this.words.delete(key(topic));
    const shard = (event as { shard?: string } | null)?.shard;
    if (shard) this.words.delete(key(topic, shard));
  }

  /** Whether what is asked of this topic and shard does not come by itself. */
  has(topic: string, shard: string | null = null): boolean {
    if (this.words.has(key(topic))) return true;
    return shard !== null && this.words.has(key(topic, shard));
  }

  /** Shards of a topic that fail while the topic as a whole does not. */
  shards(topic: string): string[] {
    const prefix = key(topic, '');
    return [...this.words.keys()].filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
  }

  clear(): void {
    this.words.clear();
  }
}

/** Neither topics nor shards have a space. A topic of one shard is that shard's, whether or not it is named. */
function key(topic: string, shard?: string | null): string {
  return shard == null || topic.endsWith(`:${shard}`) ? topic : `${topic} ${shard}`;
}
