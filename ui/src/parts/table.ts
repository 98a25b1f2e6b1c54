// What a table is told of its columns.

import { count } from '../format/text';
import type { SortValue } from './sort';

export interface Column<R> {
  key: string;
  title: string;
  /** Longer than the title, for whoever hovers. */
  hint?: string;
  /** CSS width; columns without one share what is left. */
  width?: string;
  align?: 'right';
  mono?: boolean;
  /** What is sorted by; without it the column does not sort. */
  sort?: (row: R) => SortValue;
  /** Most first on the first click. */
  descending?: boolean;
  /** The text of a cell, where the table's own snippet does not draw it. */
  text?: (row: R) => string;
}

/** A column of numbers: to the right, most first. */
export function amount<R>(
  key: string,
  title: string,
  width: string,
  of: (row: R) => number | null | undefined,
  format: (value: number | null | undefined) => string = count,
  more: Partial<Column<R>> = {},
): Column<R> {
  return { key, title, width, align: 'right', descending: true, sort: of, text: (row) => format(of(row)), ...more };
}
