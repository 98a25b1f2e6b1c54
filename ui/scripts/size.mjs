// The budget of the bundle (experience chapter §3.6): all scripts and styles, gzipped.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const BUDGET = 300 * 1024;
let total = 0;
const walk = (dir) => {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) walk(path);
    else if (/\.(js|css|html|svg)$/.test(name)) total += gzipSync(readFileSync(path), { level: 9 }).length;
  }
};
walk('dist');
console.log(`bundle: ${(total / 1024).toFixed(1)} KiB gzip of ${BUDGET / 1024}`);
if (total > BUDGET) {
  console.error('the bundle is over its budget');
  process.exit(1);
}
