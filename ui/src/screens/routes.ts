// Every screen, the question it answers, and the letter after `g` that goes there.

import { match, type Query } from '../route/url';
import type { IconName } from '../parts/icons';

export interface Screen {
  path: string;
  title: string;
  question: string;
  icon: IconName;
  /** Without a group it is not in the menu. */
  group?: string;
  letter?: string;
}

export const SCREENS: Screen[] = [
  { path: '/', title: 'Overview', question: 'Is the fleet healthy?', icon: 'overview', group: 'Fleet', letter: 'o' },
  {
    path: '/shards',
    title: 'Shards',
    question: 'Which shard is slow or short?',
    icon: 'shards',
    group: 'Fleet',
    letter: 's',
  },
  {
    path: '/shard-reports',
    title: 'Shard capacity',
    question: 'What does each shard hold and lack?',
    icon: 'reports',
    group: 'Fleet',
    letter: 'p',
  },
  { path: '/topology', title: 'Topology', question: 'Who owns what?', icon: 'topology', group: 'Fleet', letter: 't' },
  {
    path: '/needs',
    title: 'Needs',
    question: 'Why is this not satisfied?',
    icon: 'needs',
    group: 'Demand',
    letter: 'n',
  },
  {
    path: '/clusters',
    title: 'Clusters',
    question: 'What does my cluster ask and get?',
    icon: 'clusters',
    group: 'Demand',
    letter: 'c',
  },
  {
    path: '/available-capacity',
    title: 'Available capacity',
    question: 'What could I get?',
    icon: 'stack',
    group: 'Demand',
    letter: 'a',
  },
  {
    path: '/whatif',
    title: 'What if',
    question: 'Would this fit now, and at what cost?',
    icon: 'whatif',
    group: 'Demand',
    letter: 'w',
  },
  {
    path: '/machines',
    title: 'Machines',
    question: 'Where is this machine, what happened to it?',
    icon: 'machines',
    group: 'Supply',
    letter: 'm',
  },
  {
    path: '/finops',
    title: 'FinOps',
    question: 'Where does the money go?',
    icon: 'finops',
    group: 'Supply',
    letter: 'f',
  },
  {
    path: '/decisions',
    title: 'Decisions',
    question: 'What did BigFleet just do, and why?',
    icon: 'decisions',
    group: 'History',
    letter: 'd',
  },
  {
    path: '/replay',
    title: 'Replay',
    question: 'What happened at 03:12?',
    icon: 'replay',
    group: 'History',
    letter: 'r',
  },
  { path: '/shards/:pod', title: 'Shard', question: 'Why is it slow or short?', icon: 'shards' },
  { path: '/clusters/:id', title: 'Cluster', question: 'What does it ask and get?', icon: 'clusters' },
];

export function find(path: string): { screen: Screen; params: Query } | null {
  for (const screen of SCREENS) {
    const params = match(screen.path, path);
    if (params) return { screen, params };
  }
  return null;
}
