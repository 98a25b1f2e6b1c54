// Bodies of the dashboard's HTTP API, by where they come from. `null` always means "not known".

export type * from './types/answer';
export type * from './types/metrics';
export type * from './types/crds';
export type * from './types/coordinator';
export type * from './types/needs';
export type * from './types/money';
export type * from './types/shard';
