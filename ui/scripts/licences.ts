// Licences of what is bundled, as their licences demand; and none that may not be.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause']);
const PACKAGE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//;

export function licences(): Plugin {
  return {
    name: 'licences',
    apply: 'build',
    generateBundle() {
      const folders = new Map<string, string>();
      for (const id of this.getModuleIds()) {
        const [, folder, name] = PACKAGE.exec(id) ?? [];
        if (folder !== undefined && name !== undefined) folders.set(name, folder.replace(/^\0/, ''));
      }
      const parts = [...folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, folder]) => notice(name, folder));
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: parts.join(`\n${'-'.repeat(72)}\n\n`) });
    },
  };
}

function notice(name: string, folder: string): string {
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
    license: string;
  };
  if (!ALLOWED.has(license)) throw new Error(`${name} is under ${license}, which may not be bundled`);
  const file = readdirSync(folder).find((entry) => /^licen[sc]e/i.test(entry));
  const text =
    file !== undefined && existsSync(join(folder, file))
      ? readFileSync(join(folder, file), 'utf8').trim()
      : `Licence: ${license}`;
  return `${name} ${version}\n\n${text}\n`;
}
