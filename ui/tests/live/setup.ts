// One demo for all live tests.

import type { TestProject } from 'vitest/node';
import { Demo, type Where } from './demo';

declare module 'vitest' {
  export interface ProvidedContext {
    where: Where;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const demo = await Demo.start();
  project.provide('where', demo.where);
  return async () => {
    const left = await demo.stop();
    if (left.length > 0) throw new Error(`the demo left behind: ${left.join(', ')}`);
  };
}
