// Screenshots of a page, and what changed between them, as one animated picture.

import type { Browser, Page } from 'playwright-core';
import { animated, type Frame } from './webp';

interface Shot {
  png: Buffer;
  at: number;
}

export class Film {
  private readonly shots: Shot[] = [];

  constructor(private readonly page: Page) {}

  async shoot(): Promise<void> {
    this.shots.push({ png: await this.page.screenshot(), at: Date.now() });
  }

  /** Until something is over, and then for the time that it takes to read. */
  async until(over: () => Promise<boolean>, everyMs: number, linger: number): Promise<void> {
    let end = Infinity;
    while (Date.now() < end) {
      const next = Date.now() + everyMs;
      await this.shoot();
      if (end === Infinity && (await over())) end = Date.now() + linger;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - Date.now())));
    }
  }

  /** No larger than `most` bytes: coarser until it fits. */
  async develop(browser: Browser, most: number): Promise<Buffer> {
    for (const quality of [0.8, 0.7, 0.6, 0.5, 0.4]) {
      const film = await this.code(browser, quality);
      if (film.length <= most) return film;
    }
    throw new Error(`${this.shots.length} shots do not fit into ${most} bytes`);
  }

  private async code(browser: Browser, quality: number): Promise<Buffer> {
    const page = await browser.newPage();
    try {
      const frames: Frame[] = [];
      let size = { width: 0, height: 0 };
      for (const [index, shot] of this.shots.entries()) {
        const next = this.shots[index + 1];
        const duration = next === undefined ? 3000 : Math.min(3000, next.at - shot.at);
        const part = await page.evaluate(difference, { png: shot.png.toString('base64'), quality });
        const last = frames.at(-1);
        // Nothing moved: the picture before stays.
        if (part === null) {
          if (last) last.duration += duration;
          continue;
        }
        if (index === 0) size = { width: part.width, height: part.height };
        frames.push({ ...part, still: Buffer.from(part.webp, 'base64'), duration });
      }
      return animated(size.width, size.height, frames);
    } finally {
      await page.close();
    }
  }
}

/** In the browser: the smallest rectangle that differs from the shot before, coded. */
async function difference({
  png,
  quality,
}: {
  png: string;
  quality: number;
}): Promise<{ x: number; y: number; width: number; height: number; webp: string } | null> {
  const kept = globalThis as unknown as { before?: ImageData };
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d', { alpha: false, willReadFrequently: true });
  if (!context) throw new Error('no canvas');
  context.drawImage(image, 0, 0);
  const now = context.getImageData(0, 0, image.width, image.height);
  const [a, b] = [new Uint32Array(now.data.buffer), kept.before ? new Uint32Array(kept.before.data.buffer) : null];
  let [left, top, right, bottom] = [0, 0, image.width - 1, image.height - 1];
  if (b) {
    [left, top, right, bottom] = [image.width, image.height, -1, -1];
    for (let y = 0; y < image.height; y += 1)
      for (let x = 0; x < image.width; x += 1)
        if (a[y * image.width + x] !== b[y * image.width + x]) {
          left = Math.min(left, x);
          right = Math.max(right, x);
          top = Math.min(top, y);
          bottom = Math.max(bottom, y);
        }
    if (right < 0) return null;
  }
  kept.before = now;
  // Places are counted in twos.
  [left, top] = [left - (left % 2), top - (top % 2)];
  const [width, height] = [right - left + 1, bottom - top + 1];
  const cut = new OffscreenCanvas(width, height);
  cut.getContext('2d', { alpha: false })?.drawImage(canvas, left, top, width, height, 0, 0, width, height);
  const blob = await cut.convertToBlob({ type: 'image/webp', quality });
  const coded = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (const byte of coded) text += String.fromCharCode(byte);
  return { x: left, y: top, width, height, webp: btoa(text) };
}
