// Keys that work on every screen: `/` searches, `g` and a letter goes, `?` helps.

import { go, href } from '../route/router.svelte';
import { SCREENS } from '../screens/routes';

/** A `g` waits this long for its letter. */
const WAIT_MS = 1200;

class Keyboard {
  help = $state(false);
  /** `g` was pressed and its letter is awaited. */
  going = $state(false);
  private timer: ReturnType<typeof setTimeout> | undefined;

  onKey = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (typing(event.target)) {
      if (event.key === 'Escape') (event.target as HTMLElement).blur();
      return;
    }
    if (this.going) {
      this.going = false;
      clearTimeout(this.timer);
      const screen = SCREENS.find((screen) => screen.letter === event.key.toLowerCase());
      if (screen) {
        event.preventDefault();
        go(href(screen.path));
      }
      return;
    }
    if (event.key === 'g') {
      this.going = true;
      this.timer = setTimeout(() => (this.going = false), WAIT_MS);
    } else if (event.key === '/') {
      event.preventDefault();
      const own = document.querySelector<HTMLInputElement>('main [data-search]');
      (own ?? document.querySelector<HTMLInputElement>('[data-jump]'))?.focus();
    } else if (event.key === '?') {
      this.help = !this.help;
    } else if (event.key === 'Escape' && this.help) {
      event.preventDefault();
      this.help = false;
    }
  };
}

export const keyboard = new Keyboard();

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.('input, textarea, select, [contenteditable]');
}
