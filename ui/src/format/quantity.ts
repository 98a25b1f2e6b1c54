// Kubernetes quantities as whole nano-units: estimates divide them, and floats would round up.

const NANO = 1_000_000_000n;
const SUFFIX: Record<string, [bigint, bigint]> = {
  '': [NANO, 1n],
  n: [1n, 1n],
  u: [1_000n, 1n],
  m: [1_000_000n, 1n],
  k: [NANO * 10n ** 3n, 1n],
  M: [NANO * 10n ** 6n, 1n],
  G: [NANO * 10n ** 9n, 1n],
  T: [NANO * 10n ** 12n, 1n],
  P: [NANO * 10n ** 15n, 1n],
  E: [NANO * 10n ** 18n, 1n],
  Ki: [NANO * 2n ** 10n, 1n],
  Mi: [NANO * 2n ** 20n, 1n],
  Gi: [NANO * 2n ** 30n, 1n],
  Ti: [NANO * 2n ** 40n, 1n],
  Pi: [NANO * 2n ** 50n, 1n],
  Ei: [NANO * 2n ** 60n, 1n],
};
const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE])?)$/;

/** Nano-units of a quantity, or `null` where the text is none. */
export function parse(text: string): bigint | null {
  const match = FORM.exec(text.trim());
  if (!match) return null;
  const [, sign, whole = '', fraction = '', , exponent, suffix = ''] = match;
  if (whole === '' && fraction === '') return null;
  let [numerator, denominator] = SUFFIX[suffix] ?? [NANO, 1n];
  if (exponent !== undefined) {
    const power = Number(exponent);
    if (power >= 0) numerator *= 10n ** BigInt(power);
    else denominator = 10n ** BigInt(-power);
  }
  denominator *= 10n ** BigInt(fraction.length);
  const digits = BigInt(whole + fraction || '0') * numerator;
  const nano = ceilDiv(digits, denominator);
  return sign === '-' ? -nano : nano;
}

/** Quotient rounded up; both at least 0, the divisor above. */
export function ceilDiv(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

/** `part` of `whole` in per mille, rounded down; `null` where it cannot be said. */
export function perMille(part: bigint, whole: bigint): number | null {
  if (whole <= 0n) return null;
  return Number((part * 1000n) / whole);
}

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** `12.5Gi`, `96`, `250m`: short, for chips; the exact text belongs in a title. */
export function short(name: string, text: string): string {
  const nano = parse(text);
  if (nano === null) return text;
  if (isBytes(name)) {
    let value = Number(nano) / 1e9;
    let step = 0;
    while (Math.abs(value) >= 1024 && step < BINARY.length - 1) {
      value /= 1024;
      step += 1;
    }
    return trim(value) + BINARY[step];
  }
  if (nano !== 0n && nano > -NANO && nano < NANO) return `${trim(Number(nano) / 1e6)}m`;
  return trim(Number(nano) / 1e9, true);
}

function isBytes(name: string): boolean {
  return name === 'memory' || name.startsWith('hugepages-') || name.endsWith('storage');
}

function trim(value: number, grouped = false): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0, useGrouping: grouped });
}
