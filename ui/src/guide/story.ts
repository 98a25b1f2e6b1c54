// Why each scenario is worth a minute. What it does and what must be seen, the demo itself says.

export const STORY: Record<string, string> = {
  move: 'Clusters that autoscale alone keep machines of their own. Here one fleet serves three: what one cluster no longer needs, another gets, and nothing is bought.',
  burst:
    'What is paid for anyway goes first. Only the rest is bought, and it is the first to go when the burst is over.',
  saturate:
    'Every fleet has a ceiling. What does not fit is named, with the reason the engine recorded, instead of waiting in silence.',
  preemption:
    'When nothing is left, important work takes machines from work that matters less. The wider the gap between them, the shorter the grace.',
  'spot-interruption':
    'Cheap machines vanish. Each workload says what that costs it, and the engine weighs price against probability: so critical work was never there.',
  'zone-outage':
    'A zone is gone, with a whole group and a pod of work that is spread over all zones. Both are built again where there is room, and the clock shows how long it took.',
  gang: 'A training job is all or nothing: sixteen machines with one rack in common. One domain is chosen for all of it.',
  'stock-out':
    'A cloud says no. The next cheapest machine that fits is taken; where none is left, the shortfall says why.',
  'provider-brown-out':
    'A provider is ill: some purchases fail at once, others hang until they time out. What failed is left alone for a moment and tried again, no machine is lost, and nothing is bought twice.',
  'leader-loss': 'The coordinator is three processes. One dies, another leads, and no machine notices.',
  'coordinator-loss':
    'The coordinator is not needed to run. Without it the shards go on deciding; when it returns, they report again.',
  'shard-crash':
    'A shard keeps no truth of its own. Killed in the middle, it reads everything back from the provider and drains nothing.',
  'everything-down':
    'BigFleet is switched off as a whole. The pods run on: it buys and moves machines, it does not carry them.',
  accident:
    'A cluster says by mistake that it needs nothing. Twice it is not believed; then it is, and a cap bounds what is lost per cycle.',
  'kill-switch-and-dry-run': 'One command stops every hand of the fleet, and one lets you watch what it would do.',
};
