// Why a need is unmet and what to do about it. The words are those of the command lines and of
// pod events (crates/model/src/unmet.rs; a test compares them), so that all surfaces agree.

export type Tone = 'good' | 'amber' | 'red' | 'violet' | 'grey' | 'blue';

export interface Reason {
  name: string;
  /** For people, in the summary bar and in chips. */
  title: string;
  tone: Tone;
  /** What it means, and what to do. */
  action: string;
}

const REASONS: Reason[] = [
  {
    name: 'PRIORITY_STARVED',
    title: 'Outranked',
    tone: 'amber',
    action:
      'matching machines exist but went to needs ahead of it, of a higher priority or earlier at the same; raise its priority, lower that of others, or add capacity of this shape',
  },
  {
    name: 'NO_MATCHING_SUPPLY',
    title: 'No matching supply',
    tone: 'red',
    action: "no machine of this shape in any state; relax the requirements or raise the provider's quota",
  },
  {
    name: 'TOPOLOGY_UNSATISFIABLE',
    title: 'No single domain',
    tone: 'violet',
    action: 'no single domain holds the whole group; shrink it or relax co-location; it never resolves across shards',
  },
  {
    name: 'PREEMPTION_EXHAUSTED',
    title: 'Preempted too little',
    tone: 'amber',
    action: 'victims were found but freed too little; add capacity of this shape',
  },
  {
    name: 'SPREAD_UNSATISFIABLE',
    title: 'Spread impossible',
    tone: 'violet',
    action: 'a hard spread term leaves no legal domain; widen the zones or the skew',
  },
  {
    name: 'BOOTSTRAP_REFUSED',
    title: 'Bootstrap refused',
    tone: 'red',
    action: 'the cluster refused a bootstrap blob; see its words',
  },
  {
    name: 'PROVIDER_FAILING',
    title: 'Provider failing',
    tone: 'red',
    action: 'the provider fails this shape; see its words',
  },
  {
    name: 'NO_SESSION',
    title: 'Not connected',
    tone: 'grey',
    action: 'its operator is not connected; nothing is bought until it is',
  },
  {
    name: 'PREEMPTION_UNDER_WAY',
    title: 'Preempting',
    tone: 'blue',
    action: 'machines are draining for it; wait for their grace',
  },
  {
    name: 'QUOTA_EXHAUSTED',
    title: 'Quota used up',
    tone: 'amber',
    action: "this shard's slice of the provider account is used up; see `list-quotas`",
  },
];

const UNJUDGED: Reason = {
  name: 'UNSPECIFIED',
  title: 'Not judged yet',
  tone: 'grey',
  action: 'no cycle has judged it yet; look again',
};

const BY_NAME = new Map(REASONS.map((reason) => [reason.name, reason]));

export const ALL_REASONS: readonly Reason[] = REASONS;

/** By name, with or without its prefix; a name that this build does not know is shown as it is. */
export function reason(name: string | null | undefined): Reason {
  const bare = (name ?? '').replace(/^UNMET_(REASON|DETAIL)_/, '');
  if (bare === '' || bare === 'UNSPECIFIED') return UNJUDGED;
  return (
    BY_NAME.get(bare) ?? {
      name: bare,
      title: bare.toLowerCase().replaceAll('_', ' '),
      tone: 'grey',
      action: 'this dashboard is older than the reason; see the release notes',
    }
  );
}

/** The finer reason where one is set, else the base reason. */
export function shown(unmetReason: string | null | undefined, unmetDetail: string | null | undefined): Reason {
  const fine = reason(unmetDetail);
  return fine === UNJUDGED ? reason(unmetReason) : fine;
}

/** A base reason stays in the drawer where a finer one is shown. */
export function baseBeside(unmetReason: string, unmetDetail: string | null | undefined): Reason | null {
  const base = reason(unmetReason);
  return shown(unmetReason, unmetDetail) === base ? null : base;
}
