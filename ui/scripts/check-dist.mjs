// The committed dist must be what the sources build, file by file and byte by byte, and within the
// budget: whoever built it may not have waited for the word on that.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { withinBudget } from './size.mjs';

const fresh = mkdtempSync(join(tmpdir(), 'bigfleet-ui-'));
const files = (dir, base = dir) =>
  readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    return statSync(path).isDirectory() ? files(path, base) : [relative(base, path)];
  });

try {
  execFileSync('npx', ['vite', 'build', '--outDir', fresh, '--emptyOutDir', '--logLevel', 'warn'], {
    stdio: 'inherit',
  });
  const [want, have] = [files(fresh).sort(), files('dist').sort()];
  const wrong = [...new Set([...want, ...have])].filter(
    (file) =>
      !want.includes(file) ||
      !have.includes(file) ||
      !readFileSync(join(fresh, file)).equals(readFileSync(join('dist', file))),
  );
  if (wrong.length > 0) {
    console.error(
      `dist is not what the sources build; run \`npm run build\` and commit it. Differs: ${wrong.join(', ')}`,
    );
    process.exitCode = 1;
  } else console.log(`dist is current: ${have.length} files`);
  if (!withinBudget('dist')) process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
