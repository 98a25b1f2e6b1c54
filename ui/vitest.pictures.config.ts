import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['scripts/pictures/pictures.test.ts'],
    environment: 'node',
    testTimeout: 300_000,
    hookTimeout: 90_000,
  },
});
