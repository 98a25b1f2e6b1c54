// What answers have in common, and what the server says of itself.

export type Num = number | null;

export type Counts = Record<string, number>;

/** Of metrics: without entries nothing is known, which is not the same as 0. */
export type Known = Record<string, Num>;

export type Vector = Record<string, string>;

export interface Answer {
  queriedAt: string;
}

/** Answers from metrics: when the newest sample was taken. */
export interface Sampled extends Answer {
  sampledAtUnixNanos: Num;
  scrapeIntervalSeconds: Num;
}

export interface Config extends Answer {
  grafanaUrl: string;
  prometheusWired: boolean;
  coordinatorWired: boolean;
  kubeconfigWired: boolean;
  /** `scrape`: this process reads metrics itself and keeps an hour of them. */
  metricsBy?: string | null;
  plaintext: boolean;
  openToNetwork: boolean;
  authMode: string;
  viewer: { name: string; clusters: string[] | null } | null;
  logout: string | null;
  version: string;
}
