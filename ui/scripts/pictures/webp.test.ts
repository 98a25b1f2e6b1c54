import { describe, expect, it } from 'vitest';
import { animated } from './webp';

/** A still picture with these pixels, which nobody decodes here. */
function still(pixels: string): Buffer {
  const body = Buffer.concat([Buffer.from('WEBPVP8 '), Buffer.from([pixels.length, 0, 0, 0]), Buffer.from(pixels)]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Buffer.concat([Buffer.from('RIFF'), length, body]);
}

function chunks(file: Buffer): [string, Buffer][] {
  const found: [string, Buffer][] = [];
  for (let at = 12; at < file.length;) {
    const length = file.readUInt32LE(at + 4);
    found.push([file.toString('latin1', at, at + 4), file.subarray(at + 8, at + 8 + length)]);
    at += 8 + length + (length % 2);
  }
  return found;
}

describe('an animated picture', () => {
  it('holds its frames where and as long as they are shown', () => {
    const frame = { still: still('abcd'), x: 10, y: 20, width: 300, height: 200, duration: 400 };
    const file = animated(1100, 700, [frame, frame]);
    expect(file.readUInt32LE(4)).toBe(file.length - 8);
    const [head, loop, first, second] = chunks(file);
    expect([head?.[0], loop?.[0], first?.[0], second?.[0]]).toEqual(['VP8X', 'ANIM', 'ANMF', 'ANMF']);
    expect([head?.[1].readUIntLE(4, 3), head?.[1].readUIntLE(7, 3)]).toEqual([1099, 699]);
    const body = first?.[1] ?? Buffer.alloc(0);
    expect([0, 3, 6, 9, 12].map((at) => body.readUIntLE(at, 3))).toEqual([5, 10, 299, 199, 400]);
    expect(body.toString('latin1', 16)).toBe('VP8 \x04\0\0\0abcd');
  });
  it('refuses what is no such picture', () => {
    const frame = { still: Buffer.from('GIF89a, and more'), x: 0, y: 0, width: 1, height: 1, duration: 1 };
    expect(() => animated(1, 1, [frame])).toThrow('not a WebP picture');
  });
});
