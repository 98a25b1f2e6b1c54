// What one of a few can be chosen from.

export interface Entry {
  value: string;
  text: string;
}

/** A value alone is its own text. */
export type Option = string | Entry;

export function entries(options: readonly Option[]): Entry[] {
  return options.map((one) => (typeof one === 'string' ? { value: one, text: one } : one));
}
