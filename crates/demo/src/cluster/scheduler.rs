//! A scheduler for clusters in memory: priority first, the fullest node that fits, and whoever
//! matters less makes room. It knows what the demo's pods ask for and nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    view::{Amounts, NodeView, PodView},
    workload::Workload,
};

/// What the scheduler wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// A pod, by uid, has a node.
    Bind(String, String),
    /// A pod, by uid, must go.
    Evict(String),
}

/// What it remembers between two looks.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Bindings by uid that the cache does not show yet.
    assumed: HashMap<String, String>,
    /// Nodes by uid that are being cleared for a pod.
    nominated: HashMap<String, String>,
    /// Pods told to go that the cache still shows as staying.
    evicted: HashSet<String>,
}

struct Seat<'a> {
    name: &'a str,
    node: &'a NodeView,
    free: Amounts,
    pods: Vec<&'a PodView>,
}

impl Scheduler {
    /// Looks at everything once. A group of which some pods are still to be seen waits for them:
    /// where its first pod goes all of them must have room.
    pub(crate) fn look(
        &mut self,
        pods: &[PodView],
        nodes: &BTreeMap<String, NodeView>,
        incomplete: &HashSet<Workload>,
    ) -> Vec<Wish> {
        let known: HashMap<&str, &PodView> =
            pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
        let pending = |uid: &str| known.get(uid).is_some_and(|pod| pod.node.is_none());
        self.assumed.retain(|uid, node| pending(uid) && nodes.contains_key(node));
        self.nominated.retain(|uid, node| pending(uid) && nodes.contains_key(node));
        self.evicted.retain(|uid| known.get(uid.as_str()).is_some_and(|pod| !pod.leaving));
        let mut seats = self.seats(pods, nodes);
        let mut waiting: Vec<&PodView> = pods
            .iter()
            .filter(|pod| {
                pod.node.is_none() && !pod.leaving && !self.assumed.contains_key(&pod.uid)
            })
            .filter(|pod| pod.together.is_none() || !incomplete.contains(&pod.workload))
            .collect();
        waiting.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.name.cmp(&b.name)));
        let mut wishes = Vec::new();
        for pod in &waiting {
            // Also those that were just refused: the rest of a group is no smaller group.
            let mates = |other: &&&PodView| other.workload == pod.workload;
            if !has_room(pod, waiting.iter().filter(mates).count(), &seats) {
                continue;
            }
            if let Some(at) = best(pod, &seats) {
                take(&mut seats[at], pod);
                self.assumed.insert(pod.uid.clone(), seats[at].name.to_owned());
                wishes.push(Wish::Bind(pod.uid.clone(), seats[at].name.to_owned()));
            } else if let Some(at) = self.clearing(pod, &seats) {
                // What is being cleared for it is nobody else's.
                take(&mut seats[at], pod);
            } else if let Some((at, victims)) = self.make_room(pod, &seats) {
                self.nominated.insert(pod.uid.clone(), seats[at].name.to_owned());
                take(&mut seats[at], pod);
                for victim in victims {
                    self.evicted.insert(victim.clone());
                    wishes.push(Wish::Evict(victim));
                }
            }
        }
        wishes
    }

    fn seats<'a>(
        &self,
        pods: &'a [PodView],
        nodes: &'a BTreeMap<String, NodeView>,
    ) -> Vec<Seat<'a>> {
        let mut on: HashMap<&str, Vec<&PodView>> = HashMap::new();
        for pod in pods {
            let node = pod.node.as_ref().or_else(|| self.assumed.get(&pod.uid));
            if let Some(node) = node {
                on.entry(node).or_default().push(pod);
            }
        }
        let seat = |(name, node): (&'a String, &'a NodeView)| {
            let pods = on.remove(name.as_str()).unwrap_or_default();
            let mut free = node.allocatable.clone();
            pods.iter().for_each(|pod| subtract(&mut free, &pod.needs));
            Seat { name: name.as_str(), node, free, pods }
        };
        nodes.iter().map(seat).collect()
    }

    /// The node that was nominated, as long as somebody is leaving it.
    fn clearing(&self, pod: &PodView, seats: &[Seat<'_>]) -> Option<usize> {
        let node = self.nominated.get(&pod.uid)?;
        let at = seats.iter().position(|seat| seat.name == node)?;
        let going = |other: &&&PodView| other.leaving || self.evicted.contains(&other.uid);
        let mut free = seats[at].free.clone();
        seats[at].pods.iter().filter(going).for_each(|other| add(&mut free, &other.needs));
        (seats[at].node.schedulable && fits(&pod.needs, &free)).then_some(at)
    }

    /// The node whose least important pods matter least, and those pods.
    fn make_room(&self, pod: &PodView, seats: &[Seat<'_>]) -> Option<(usize, Vec<String>)> {
        let mut found: Option<(Rank, usize, Vec<String>)> = None;
        for (at, seat) in seats.iter().enumerate() {
            if !eligible(pod, seat) || !admitted(pod, seat, seats) {
                continue;
            }
            let mut free = seat.free.clone();
            let mut lesser: Vec<&&PodView> = seat
                .pods
                .iter()
                .filter(|other| rank(other) < rank(pod) && !other.leaving)
                .filter(|other| !self.evicted.contains(&other.uid))
                .collect();
            lesser.sort_by_key(|other| rank(other));
            let mut victims = Vec::new();
            let mut worst = (i32::MIN, false);
            for other in lesser {
                if fits(&pod.needs, &free) {
                    break;
                }
                add(&mut free, &other.needs);
                victims.push(other.uid.clone());
                worst = worst.max(rank(other));
            }
            let better = found.as_ref().is_none_or(|(known, ..)| worst < *known);
            if !victims.is_empty() && fits(&pod.needs, &free) && better {
                found = Some((worst, at, victims));
            }
        }
        found.map(|(_, at, victims)| (at, victims))
    }
}

type Rank = (i32, bool);

/// Who goes first. Of equals a group does: it can be in few places, and who sits where it must
/// be could sit elsewhere.
fn rank(pod: &PodView) -> Rank {
    (pod.priority, pod.together.is_some())
}

/// Members of a group wait until one domain has room for all of them.
fn has_room(pod: &PodView, members: usize, seats: &[Seat<'_>]) -> bool {
    let Some(key) = &pod.together else { return true };
    if seats.iter().any(|seat| mates(pod, seat) > 0) {
        return true;
    }
    domains_with_room(pod, key, seats).values().any(|room| *room >= members)
}

/// Seats by domain that are free for the pod, or would be if the lesser went.
fn domains_with_room<'a>(
    pod: &PodView,
    key: &str,
    seats: &'a [Seat<'_>],
) -> BTreeMap<&'a str, usize> {
    let mut domains: BTreeMap<&str, usize> = BTreeMap::new();
    for seat in seats.iter().filter(|seat| eligible(pod, seat)) {
        let mut free = seat.free.clone();
        let lesser = seat.pods.iter().filter(|other| rank(other) < rank(pod));
        lesser.for_each(|other| add(&mut free, &other.needs));
        if let Some(domain) = seat.node.labels.get(key).filter(|_| fits(&pod.needs, &free)) {
            *domains.entry(domain).or_default() += 1;
        }
    }
    domains
}

fn mates(pod: &PodView, seat: &Seat<'_>) -> usize {
    let mate = |other: &&&PodView| other.workload == pod.workload && !other.leaving;
    seat.pods.iter().filter(mate).count()
}

/// The fullest seat that takes the pod.
fn best(pod: &PodView, seats: &[Seat<'_>]) -> Option<usize> {
    let takes = |seat: &Seat<'_>| {
        eligible(pod, seat) && fits(&pod.needs, &seat.free) && admitted(pod, seat, seats)
    };
    let cpu = |seat: &Seat<'_>| seat.free.get("cpu").copied().unwrap_or_default();
    let taking = seats.iter().enumerate().filter(|(_, seat)| takes(seat));
    taking.min_by_key(|(_, seat)| (cpu(seat), seat.name)).map(|(at, _)| at)
}

fn eligible(pod: &PodView, seat: &Seat<'_>) -> bool {
    let carries = |(key, value): (&String, &String)| seat.node.labels.get(key) == Some(value);
    seat.node.schedulable && pod.selector.iter().all(carries)
}

/// Whether spread and togetherness allow this seat.
fn admitted(pod: &PodView, seat: &Seat<'_>, seats: &[Seat<'_>]) -> bool {
    let mates = |seat: &Seat<'_>| mates(pod, seat);
    let domain = |key: &str| seat.node.labels.get(key);
    if let Some(key) = &pod.together {
        let homes = || seats.iter().filter(|seat| mates(seat) > 0);
        if homes().any(|home| home.node.labels.get(key) != domain(key)) {
            return false;
        }
        if homes().next().is_none() {
            let rooms = domains_with_room(pod, key, seats);
            let here = domain(key).and_then(|domain| rooms.get(domain.as_str()));
            if here != rooms.values().max() {
                return false;
            }
        }
    }
    let Some(key) = &pod.spread else { return true };
    let mut domains: BTreeMap<&str, usize> = BTreeMap::new();
    for seat in seats.iter().filter(|seat| eligible(pod, seat) || mates(seat) > 0) {
        if let Some(domain) = seat.node.labels.get(key) {
            *domains.entry(domain).or_default() += mates(seat);
        }
    }
    let here = domain(key).and_then(|domain| domains.get(domain.as_str()));
    let least = domains.values().min().copied().unwrap_or_default();
    here.is_some_and(|here| *here <= least)
}

fn take<'a>(seat: &mut Seat<'a>, pod: &'a PodView) {
    subtract(&mut seat.free, &pod.needs);
    seat.pods.push(pod);
}

fn fits(needs: &Amounts, free: &Amounts) -> bool {
    needs.iter().all(|(name, amount)| free.get(name).is_some_and(|free| free >= amount))
}

fn subtract(free: &mut Amounts, needs: &Amounts) {
    needs.iter().for_each(|(name, amount)| *free.entry(name.clone()).or_default() -= amount);
}

fn add(free: &mut Amounts, needs: &Amounts) {
    needs.iter().for_each(|(name, amount)| *free.entry(name.clone()).or_default() += amount);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::workload::Class;

    fn pod(name: &str, workload: Workload) -> PodView {
        let mut object = workload.pod(name).unwrap();
        object.metadata.uid = Some(name.to_owned());
        PodView::of(&object).unwrap()
    }

    fn node(zone: &str) -> NodeView {
        let labels = [
            ("node.kubernetes.io/instance-type", crate::supply::GENERAL),
            ("topology.kubernetes.io/zone", zone),
        ];
        let amount = |text: &str| text.parse::<bigfleet_model::Quantity>().unwrap().nanos();
        NodeView {
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            allocatable: [("cpu", "7500m"), ("memory", "28Gi")]
                .map(|(name, text)| (name.to_owned(), amount(text)))
                .into(),
            schedulable: true,
        }
    }

    fn nodes(zones: &[&str]) -> BTreeMap<String, NodeView> {
        zones.iter().enumerate().map(|(at, zone)| (format!("n{at}"), node(zone))).collect()
    }

    fn look(
        scheduler: &mut Scheduler,
        pods: &[PodView],
        nodes: &BTreeMap<String, NodeView>,
    ) -> Vec<Wish> {
        scheduler.look(pods, nodes, &HashSet::new())
    }

    fn bind(uid: &str, node: &str) -> Wish {
        Wish::Bind(uid.to_owned(), node.to_owned())
    }

    const BATCH: Workload = Workload::Plain(Class::Batch);
    const CRITICAL: Workload = Workload::Plain(Class::Critical);

    #[test]
    fn one_pod_fills_a_machine_and_the_important_go_first() {
        let mut scheduler = Scheduler::default();
        let pods = [pod("b", BATCH), pod("c", CRITICAL), pod("d", BATCH)];
        let wishes = look(&mut scheduler, &pods, &nodes(&["z", "z"]));
        assert_eq!(wishes, [bind("c", "n0"), bind("b", "n1")]);
        assert_eq!(look(&mut scheduler, &pods, &nodes(&["z", "z"])), [], "bound once");
        let mut cordoned = nodes(&["z", "z", "z"]);
        cordoned.get_mut("n2").unwrap().schedulable = false;
        assert_eq!(look(&mut scheduler, &pods, &cordoned), [], "not on a cordoned node");
    }

    #[test]
    fn the_lesser_makes_room_once() {
        let mut scheduler = Scheduler::default();
        let mut batch = pod("b", BATCH);
        batch.node = Some("n0".to_owned());
        let critical = pod("c", CRITICAL);
        let pods = [batch.clone(), critical.clone()];
        assert_eq!(look(&mut scheduler, &pods, &nodes(&["z"])), [Wish::Evict("b".to_owned())]);
        assert_eq!(look(&mut scheduler, &pods, &nodes(&["z"])), []);
        batch.leaving = true;
        assert_eq!(look(&mut scheduler, &[batch, critical.clone()], &nodes(&["z"])), []);
        assert_eq!(look(&mut scheduler, &[critical], &nodes(&["z"])), [bind("c", "n0")]);
    }

    #[test]
    fn a_group_goes_before_its_equals() {
        let mut spread = pod("s0", Workload::Spread);
        spread.node = Some("n0".to_owned());
        let mut pods = vec![spread];
        pods.extend(["g0", "g1", "g2"].map(|name| pod(name, Workload::Group)));
        assert_eq!(pods[0].priority, pods[1].priority);
        let wishes = look(&mut Scheduler::default(), &pods, &nodes(&["x", "x", "x", "y"]));
        let evict = Wish::Evict("s0".to_owned());
        assert_eq!(wishes, [bind("g0", "n1"), bind("g1", "n2"), evict]);
    }

    #[test]
    fn spread_pods_keep_apart_and_groups_together() {
        let spread = ["s0", "s1", "s2"].map(|name| pod(name, Workload::Spread));
        let wishes = look(&mut Scheduler::default(), &spread, &nodes(&["x", "x", "y"]));
        assert_eq!(wishes, [bind("s0", "n0"), bind("s1", "n2"), bind("s2", "n1")]);
        let three = nodes(&["x", "x", "x", "y"]);
        let mut bound = spread;
        bound[0].node = Some("n0".to_owned());
        let wishes = look(&mut Scheduler::default(), &bound, &three);
        assert_eq!(wishes, [bind("s1", "n3"), bind("s2", "n1")]);
        let group = ["g0", "g1", "g2"].map(|name| pod(name, Workload::Group));
        let wishes = look(&mut Scheduler::default(), &group, &nodes(&["x", "y", "x"]));
        assert_eq!(wishes, [], "no zone has room for three");
        let five = nodes(&["x", "y", "y", "x", "y"]);
        let incomplete = HashSet::from([Workload::Group]);
        let wishes = Scheduler::default().look(&group[..2], &five, &incomplete);
        assert_eq!(wishes, [], "the third is still to come");
        let wishes = look(&mut Scheduler::default(), &group, &five);
        assert_eq!(wishes, [bind("g0", "n1"), bind("g1", "n2"), bind("g2", "n4")]);
    }
}
