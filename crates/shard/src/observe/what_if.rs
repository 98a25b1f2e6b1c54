//! What a need would get that nobody has sent.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bigfleet_engine::{NoAcquire, WhatIf, WhatIfMachine};
use bigfleet_model::{Need, gate};
use bigfleet_wire::v1alpha1 as wire;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    shard::Shard,
    views::wire::{cycle_number, detail, domain, reason, resources},
};

/// One identity asks once in so long.
const PACE: Duration = Duration::from_secs(1);
/// Most machines that are told.
const MACHINES: usize = 1_000;
/// How often a question is asked again because a cycle came in between.
const TRIES: usize = 3;

/// Who asked when.
#[derive(Debug, Default)]
pub(super) struct Questions(Mutex<HashMap<String, Instant, RandomState>>);

impl Questions {
    /// Lets one question of an asker pass in each second.
    pub(super) fn admit(&self, asker: String) -> Result<(), Status> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        asked.retain(|_, at| *at + PACE > now);
        if asked.contains_key(&asker) {
            return Err(Status::resource_exhausted("one WhatIf per second; wait and ask again"));
        }
        asked.insert(asker, now);
        Ok(())
    }
}

/// A question that passes the demand gate.
pub(super) fn checked(request: wire::WhatIfRequest, wall: i64) -> Result<Need, Status> {
    let wire::WhatIfRequest { cluster_id, need } = request;
    if cluster_id.is_empty() {
        return Err(Status::invalid_argument("cluster_id: empty; name the cluster that would ask"));
    }
    let need = need
        .ok_or_else(|| Status::invalid_argument("need: missing; describe the need to be tried"))?;
    gate::demand::need(&cluster_id.into(), wall, need)
        .map_err(|refusal| Status::invalid_argument(refusal.to_string()))
}

impl Shard {
    /// Tries a need on a copy. The engine is held while it is copied, and while what
    /// came of it is named; call it off the runtime, and one at a time.
    pub(super) fn what_if(&self, need: &Need) -> wire::WhatIfResponse {
        let connected = self.options.local_bootstrap || self.sessions.is_connected(&need.cluster);
        let held = (!connected).then_some(NoAcquire::NoSession);
        for _ in 0..TRIES {
            let mut rehearsal = self.decider.blocking_read().engine.rehearse();
            rehearsal.decide(need, held, self.clock.now());
            let told = self.decider.blocking_read().engine.tell(&rehearsal);
            if let Some(told) = told {
                return self.what_if_response(&told);
            }
        }
        let told = self.decider.blocking_read().engine.what_if_held(need, held, self.clock.now());
        self.what_if_response(&told)
    }

    fn what_if_response(&self, told: &WhatIf) -> wire::WhatIfResponse {
        let snapshot = self.needs_read.load();
        let mut response = wire::WhatIfResponse {
            cycle: cycle_number(snapshot.cycle),
            computed_at_unix_nanos: snapshot.computed_at,
            satisfied: told.satisfied,
            picks: told.picks.iter().take(MACHINES).map(pick).collect(),
            victims: told.victims.iter().take(MACHINES).map(pick).collect(),
            dollars_per_hour: told.dollars_per_hour,
            same_domain: domain(told.domain.iter().flat_map(|domain| domain.values())),
            ..wire::WhatIfResponse::default()
        };
        if !told.satisfied {
            response.residual_deficit = Some(resources(&told.deficit));
            response.set_unmet_detail(detail(told.detail));
            if let Some(why) = told.reason {
                response.set_unmet_reason(reason(why));
            }
        }
        response
    }
}

fn pick(machine: &WhatIfMachine) -> wire::WhatIfPick {
    wire::WhatIfPick {
        machine_id: machine.machine.to_string(),
        state: machine.state.to_wire(),
        effective_cost: machine.cost,
        cluster_id: machine.cluster.as_deref().unwrap_or_default().to_owned(),
        priority: machine.priority.unwrap_or(0),
    }
}
