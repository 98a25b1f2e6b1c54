// An animated WebP out of still ones: its container is written here, the pictures in it are coded
// by the browser that took them.

export interface Frame {
  /** A whole still picture. */
  still: Uint8Array;
  /** Where it lies on the canvas; both even. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Milliseconds for which it is shown. */
  duration: number;
}

const ANIMATED = 0x02;
/** Replace what is below, and stay: each frame changes a part of the one before. */
const NO_BLEND = 0x02;

export function animated(width: number, height: number, frames: readonly Frame[]): Buffer {
  const head = Buffer.alloc(10);
  head[0] = ANIMATED;
  head.writeUIntLE(width - 1, 4, 3);
  head.writeUIntLE(height - 1, 7, 3);
  // No background, and round and round.
  const loop = Buffer.alloc(6);
  const body = Buffer.concat([chunk('VP8X', head), chunk('ANIM', loop), ...frames.map(frameChunk)]);
  return Buffer.concat([tagged('RIFF', body.length + 4), Buffer.from('WEBP'), body]);
}

function frameChunk(frame: Frame): Buffer {
  const head = Buffer.alloc(16);
  head.writeUIntLE(frame.x / 2, 0, 3);
  head.writeUIntLE(frame.y / 2, 3, 3);
  head.writeUIntLE(frame.width - 1, 6, 3);
  head.writeUIntLE(frame.height - 1, 9, 3);
  head.writeUIntLE(Math.round(frame.duration), 12, 3);
  head[15] = NO_BLEND;
  return chunk('ANMF', Buffer.concat([head, coded(frame.still)]));
}

/** The chunks of a still picture that are its pixels. */
function coded(still: Uint8Array): Buffer {
  const from = Buffer.from(still);
  if (from.toString('latin1', 0, 4) !== 'RIFF' || from.toString('latin1', 8, 12) !== 'WEBP')
    throw new Error('not a WebP picture');
  const parts: Buffer[] = [];
  for (let at = 12; at + 8 <= from.length;) {
    const length = from.readUInt32LE(at + 4);
    const end = at + 8 + length + (length % 2);
    if (['VP8 ', 'VP8L', 'ALPH'].includes(from.toString('latin1', at, at + 4))) parts.push(from.subarray(at, end));
    at = end;
  }
  if (parts.length === 0) throw new Error('a WebP picture without pixels');
  return Buffer.concat(parts);
}

function chunk(name: string, body: Buffer): Buffer {
  return Buffer.concat([tagged(name, body.length), body, Buffer.alloc(body.length % 2)]);
}

function tagged(name: string, length: number): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(length, 4);
  return head;
}
