// The recording that is loaded, and where in it we stand.

import { server, world } from '../api/source.svelte';
import type { Moment, Recording } from './recording';
import { ReplaySource } from './source';

class Player {
  recording = $state.raw<Recording | null>(null);
  index = $state(0);
  playing = $state(false);
  /** Moments a second. */
  speed = $state(2);
  private source: ReplaySource | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;

  get moment(): Moment | null {
    return this.recording?.moments[this.index] ?? null;
  }

  open(recording: Recording): void {
    this.pause();
    this.recording = recording;
    this.source = new ReplaySource(recording);
    this.index = Math.max(0, recording.moments.length - 1);
    this.source.at = this.moment?.at ?? 0;
    world.use(this.source);
  }

  close(): void {
    this.pause();
    this.recording = null;
    this.source = null;
    world.use(server);
  }

  seek(index: number): void {
    const last = (this.recording?.moments.length ?? 1) - 1;
    this.index = Math.max(0, Math.min(last, index));
    if (!this.source) return;
    this.source.at = this.moment?.at ?? 0;
    world.moved();
  }

  play(): void {
    if (this.playing) return this.pause();
    const last = (this.recording?.moments.length ?? 1) - 1;
    if (this.index >= last) this.seek(0);
    this.playing = true;
    this.timer = setInterval(() => {
      if (this.index >= last) this.pause();
      else this.seek(this.index + 1);
    }, 1000 / this.speed);
  }

  pause(): void {
    this.playing = false;
    clearInterval(this.timer);
  }
}

export const player = new Player();
