// News of a topic for as long as a component is there and seen.

import { now } from './now.svelte';
import { world } from './source.svelte';
import { stream } from './stream.svelte';

/** To be called while a component is set up. */
export function onTopic(topic: () => string | null, take: (event: unknown) => void): void {
  $effect(() => {
    const wanted = topic();
    if (wanted === null || !now.visible || !world.source.live) return;
    return stream.subscribe(wanted, take);
  });
}
