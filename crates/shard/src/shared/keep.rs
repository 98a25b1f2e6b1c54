//! How holdings change: less at once, then the disk, then more.

use std::sync::{Arc, atomic::Ordering};

use bigfleet_model::ClusterId;

use super::{InForce, Shared, lock};
use crate::{
    holdings::{Effect, Event, Holdings, Key, Ownership, Refused, file},
    shard::Shard,
};

impl Shared {
    /// The same again is nothing new: no List has to be read anew for a leader's term.
    fn put_in_force(&self, ownership: Ownership) -> u64 {
        if self.in_force().ownership == ownership {
            return self.revision();
        }
        let revision = self.revision() + 1;
        self.in_force.store(Arc::new(InForce { ownership, revision }));
        self.quota().recount();
        revision
    }

    /// The file says this from now on; the process ends if it cannot.
    async fn persist(&self, holdings: &Arc<Holdings>) -> bool {
        let Some(path) = self.file.clone() else { return true };
        let written = holdings.clone();
        let written = tokio::task::spawn_blocking(move || file::write(&path, &written)).await;
        let error = match written {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(error, "what this shard owns cannot be written; the process ends");
        self.broken.cancel();
        false
    }

    /// Nothing begins any more on what an event takes. Whoever found out that it is due
    /// says so at the same desk, so that nothing begins in between.
    pub(super) fn foresee(&self, event: &Event) -> Result<(), Refused> {
        let before = self.holdings.load();
        let after = before.apply(event)?.after;
        if after == **before {
            // Asked for again: nothing is taken, and no List has to be read anew.
            return Ok(());
        }
        let less = self.in_force().ownership.and(&Ownership::of(&after));
        self.put_in_force(less);
        Ok(())
    }

    /// Domains are about to be ours: nothing is bought by what was counted without them.
    fn note_gained_domains(&self, effects: &[Effect]) {
        let domain = |effect: &Effect| matches!(effect, Effect::Hold(Key::Domain(_)));
        if effects.iter().any(domain) {
            self.domains_since.store(self.revision() + 1, Ordering::Release);
        }
    }

    /// Clusters are ours as of this revision.
    fn note_gained(&self, effects: &[Effect], revision: u64) {
        let mut gained = lock(&self.gained);
        for effect in effects {
            if let Effect::Hold(Key::Cluster(cluster)) = effect {
                gained.insert(cluster.clone(), revision);
            }
        }
    }

    /// Resolves if the process must end.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }
}

impl Shard {
    /// Takes an event in; what follows has happened or is in force when this returns.
    pub(super) async fn take(
        &self,
        shared: &Shared,
        event: &Event,
    ) -> Result<Vec<Effect>, Refused> {
        let _turn = shared.writer.lock().await;
        self.take_in_turn(shared, event).await
    }

    /// The same for whoever has the turn.
    pub(super) async fn take_in_turn(
        &self,
        shared: &Shared,
        event: &Event,
    ) -> Result<Vec<Effect>, Refused> {
        let before = shared.holdings.load_full();
        let step = before.apply(event)?;
        if step.after == *before {
            return Ok(step.effects);
        }
        let (after, effects) = (Arc::new(step.after), step.effects);
        let ownership = Ownership::of(&after);
        if effects.iter().any(Effect::takes) {
            let less = shared.in_force().ownership.and(&ownership);
            shared.put_in_force(less);
            self.let_go_of_clusters(shared, &effects);
            self.let_go(&effects).await;
        }
        if !shared.persist(&after).await {
            // Nothing of it is used: the process is about to end.
            return std::future::pending().await;
        }
        shared.note_gained_domains(&effects);
        let other_slices = before.slices() != after.slices();
        shared.holdings.store(after);
        if other_slices {
            shared.quota().recount();
        }
        let revision = shared.put_in_force(ownership);
        shared.note_gained(&effects, revision);
        shared.changed();
        if effects.iter().any(Effect::gives) {
            self.reconciler.look_soon();
        }
        self.wake();
        Ok(effects)
    }

    /// What was known of lost clusters is forgotten; their operators begin anew, here
    /// or where they were pointed to.
    fn let_go_of_clusters(&self, shared: &Shared, effects: &[Effect]) {
        let lost = effects.iter().filter_map(|effect| match effect {
            Effect::Stop(Key::Cluster(cluster)) => Some(cluster.clone()),
            _ => None,
        });
        let lost: Vec<ClusterId> = lost.collect();
        for cluster in &lost {
            lock(&shared.gained).remove(cluster);
            tracing::info!(%cluster, "the cluster moves to another shard");
            // In this order: a roll-up that is being taken in would come after the forgetting.
            self.sessions.end(cluster, "the cluster is served by another shard; connect there");
            self.needs.forget(cluster);
        }
        lock(&shared.lost_clusters).extend(lost);
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_model::{MachineId, PenaltyBucket};

    use super::*;
    use crate::holdings::{Assignment, Domain, Drain, Out, TransferId};

    /// A drain is asked for by every answer until it is over.
    #[test]
    fn what_was_let_go_of_before_changes_nothing_in_force() {
        let home = Domain::new("zone".to_owned(), "a".to_owned()).expect("a domain");
        let transfer = TransferId::from("t");
        let assignment = Assignment {
            version: 1,
            held: [Key::Domain(home.clone())].into_iter().collect(),
            open_transfers: [transfer.clone()].into(),
            ..Assignment::default()
        };
        let drain = Some(Drain { priority: 1, bucket: PenaltyBucket::ZERO, over: false });
        let out = Out { home, machines: [MachineId::from("m")].into(), drain };
        let picked = Event::Picked { transfer, out };
        let open = Holdings::default().apply(&Event::Assigned(assignment)).expect("taken").after;
        let shared = Shared::new(None, open.clone());
        shared.foresee(&picked).expect("open");
        assert_eq!(shared.revision(), 1);
        assert!(shared.in_force().ownership.is_away("m"));

        let shared = Shared::new(None, open.apply(&picked).expect("open").after);
        shared.foresee(&picked).expect("open");
        assert_eq!(shared.revision(), 0);
    }

    /// A leader's term is written down, and nothing is read anew for it.
    #[test]
    fn the_same_again_is_nothing_new() {
        let held = [Key::Cluster("c".into())].into_iter().collect();
        let assignment = Assignment { version: 1, held, ..Assignment::default() };
        let open = Holdings::default().apply(&Event::Assigned(assignment)).expect("taken").after;
        let shared = Shared::new(None, open.clone());
        let heard = open.apply(&Event::Heard { fleet: None, term: 7 }).expect("newer").after;
        assert_eq!(shared.put_in_force(Ownership::of(&heard)), 0);
        assert_eq!(shared.put_in_force(Ownership::default()), 1);
    }
}
