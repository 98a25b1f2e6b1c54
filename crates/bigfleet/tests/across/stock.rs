//! What the provider of a neighbourhood has: flags of the simulated cloud.

/// So many zones, `zone-a`, `zone-b` and so on, on a provider that refuses older epochs.
pub(crate) fn zones(count: usize) -> Vec<String> {
    let names = ('a'..='z').take(count).map(|letter| format!("{{name: zone-{letter}, racks: 1}}"));
    let names: Vec<String> = names.collect();
    let region = format!("--region={{name: r, zones: [{}]}}", names.join(", "));
    let usual = ["--interruption-factor=0", "--require-token", "--strict-epoch"];
    std::iter::once(region).chain(usual.map(str::to_owned)).collect()
}

/// Idle machines of a type, so many in all over these zones.
pub(crate) fn idle(instance_type: &str, count: usize, zones: &[&str]) -> String {
    let kind = format!("capacity: BARE_METAL, count: {count}, state: IDLE");
    tier(instance_type, &format!("{kind}, zones: [{}]", zones.join(", ")))
}

/// Slots of a type, so many in all over these zones.
pub(crate) fn slots(instance_type: &str, count: usize, zones: &[&str]) -> String {
    let kind = format!("capacity: ON_DEMAND, count: {count}, state: SPECULATIVE, price: 0.4");
    tier(instance_type, &format!("{kind}, zones: [{}]", zones.join(", ")))
}

fn tier(instance_type: &str, rest: &str) -> String {
    format!(
        "--tier={{name: {instance_type}, type: {instance_type}, {rest}, \
         resources: {{cpu: 8, memory: 32Gi}}}}"
    )
}

/// Four machines and four slots in each of so many zones.
pub(crate) fn four_and_four(count: usize) -> Vec<String> {
    let all = 4 * count;
    let mut stock = zones(count);
    stock.push(tier("epyc", &format!("capacity: BARE_METAL, count: {all}, state: IDLE")));
    let slots = format!("capacity: ON_DEMAND, count: {all}, state: SPECULATIVE, price: 0.4");
    stock.push(tier("m8", &slots));
    stock
}
