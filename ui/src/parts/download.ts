/** Hands JSON lines to the browser as a file. */
export function download(lines: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(lines);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
