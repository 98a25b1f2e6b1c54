// One clock for all ages, and whether anybody looks.

class Now {
  /** Milliseconds that only rise, whatever the wall clock does. */
  steady = $state(performance.now());
  wall = $state(Date.now());
  visible = $state(document.visibilityState !== 'hidden');

  constructor() {
    setInterval(() => this.tick(), 1000);
    document.addEventListener('visibilitychange', () => {
      this.visible = document.visibilityState !== 'hidden';
      if (this.visible) this.tick();
    });
  }

  private tick(): void {
    if (document.visibilityState === 'hidden') return;
    this.steady = performance.now();
    this.wall = Date.now();
  }
}

export const now = new Now();
