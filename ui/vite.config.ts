import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { licences } from './scripts/licences.ts';

export default defineConfig({
  plugins: [svelte(), licences()],
  // Assets are found relative to <base href>, which the server fills in: one build for every base path.
  base: './',
  build: {
    target: 'es2022',
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ['index.html', 'guide.html'],
      output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 2 }] } },
    },
  },
  worker: { format: 'es' },
  test: { include: ['src/**/*.test.ts', 'scripts/*.test.ts', 'scripts/pictures/webp.test.ts'], environment: 'node' },
  server: { proxy: { '/api': 'http://127.0.0.1:8080' } },
});
