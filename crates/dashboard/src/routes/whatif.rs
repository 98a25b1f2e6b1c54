//! Would it fit now?

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{extract::State, response::IntoResponse};
use bigfleet_plain::need::NeedText;
use bigfleet_wire::v1alpha1::{WhatIfPick, WhatIfRequest, WhatIfResponse};
use prost::Message as _;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Response};

use super::Shared;
use crate::{
    api::{Answer, Params, Refusal, Source, params::required},
    auth::Viewer,
    metrics::Calls,
    source::{
        coalesce::{Coalesced, Outcome},
        shards::{Shard, WITHIN},
    },
    view::{dollars, instant, state, unmet_detail, unmet_reason, vector},
};

/// A shard answers one a second to an identity, and all viewers share ours.
const APART: Duration = Duration::from_millis(1_050);

/// A turn keeps its own time; this only guards it.
const AT_MOST: Duration = Duration::from_secs(WITHIN.as_secs() + 1);

/// When a shard may be asked again.
type Turn = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// Questions to shards, one after another; who asks the same shares one.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Mutex<HashMap<String, Turn>>,
    asked: Coalesced<(String, Vec<u8>), WhatIfResponse>,
}

impl Turns {
    /// Nobody was asked so far.
    pub(crate) fn new(calls: &Calls) -> Self {
        Self { turns: Mutex::default(), asked: Coalesced::new(calls) }
    }

    async fn ask(&self, shard: Shard, request: WhatIfRequest) -> Outcome<WhatIfResponse> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(shard.id.clone()).or_default().clone()
        };
        let key = (shard.id.clone(), request.encode_to_vec());
        self.asked.get(key, AT_MOST, || Self::take(turn, shard, request)).await
    }

    /// Waits for a turn and takes it.
    async fn take(
        turn: Turn,
        shard: Shard,
        request: WhatIfRequest,
    ) -> Result<WhatIfResponse, Refusal> {
        let asked = async {
            let mut next = turn.lock().await;
            loop {
                if let Some(next) = *next {
                    sleep_until(next).await;
                }
                *next = Some(Instant::now() + APART);
                let answer = shard.observe().what_if(shard.request(request.clone())).await;
                match answer.map(Response::into_inner) {
                    // Somebody else has our identity too.
                    Err(status) if status.code() == Code::ResourceExhausted => {}
                    answer => return answer.map_err(|status| shard.refused(&status)),
                }
            }
        };
        let busy = |_| Err(Refusal::failed(Source::Shard, format!("{} is busy", shard.id)));
        timeout(WITHIN, asked).await.unwrap_or_else(busy)
    }
}

/// Which need, where.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    shard: String,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    need: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    satisfied: bool,
    reason: Option<&'static str>,
    unmet_reason: Option<&'static str>,
    unmet_detail: Option<&'static str>,
    residual_deficit: Option<&'a BTreeMap<String, String>>,
    picks: Vec<Pick<'a>>,
    victims: Vec<Pick<'a>>,
    dollars_per_hour: Option<f64>,
    same_domain: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pick<'a> {
    machine_id: Cow<'a, str>,
    state: &'static str,
    effective_cost: Option<f64>,
    cluster_id: Option<&'a str>,
    priority: Option<i32>,
}

/// Machines that would be taken. Of one whose cluster the viewer may not see they learn no more
/// than that there is one.
fn picks<'a>(wire: &'a [WhatIfPick], viewer: &Viewer) -> Vec<Pick<'a>> {
    let pick = |(at, wire): (usize, &'a WhatIfPick)| {
        let told = viewer.sees(&wire.cluster_id);
        Pick {
            machine_id: match told {
                true => Cow::Borrowed(wire.machine_id.as_str()),
                false => Cow::Owned(format!("hidden-{}", at + 1)),
            },
            state: state(wire.state),
            effective_cost: dollars(wire.effective_cost).filter(|_| told),
            cluster_id: told.then_some(wire.cluster_id.as_str()),
            priority: told.then_some(wire.priority),
        }
    };
    wire.iter().enumerate().map(pick).collect()
}

/// Would this fit now, and what would it cost?
pub(super) async fn whatif(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let id = required("shard", &which.shard)?;
    let cluster_id = required("cluster", &which.cluster)?.to_owned();
    viewer.check(&cluster_id)?;
    let bad = |problem: String| Refusal::BadParameter(format!("need: {problem}"));
    let text: NeedText = serde_json::from_str(required("need", &which.need)?)
        .map_err(|error| bad(error.to_string()))?;
    let need = Some(text.into_wire().map_err(bad)?);
    let shard = app.sources.shards.find(id).await?;
    let answer = app.whatif_turns.ask(shard, WhatIfRequest { cluster_id, need }).await?;
    let wire = &answer.value;
    let (reason, detail) = (unmet_reason(wire.unmet_reason), unmet_detail(wire.unmet_detail));
    let body = Verdict {
        shard: id,
        cycle: wire.cycle,
        computed_at_unix_nanos: instant(wire.computed_at_unix_nanos),
        satisfied: wire.satisfied,
        reason: if wire.satisfied { None } else { detail.or(reason) },
        unmet_reason: reason,
        unmet_detail: detail,
        residual_deficit: vector(wire.residual_deficit.as_ref()),
        picks: picks(&wire.picks, &viewer),
        victims: picks(&wire.victims, &viewer),
        dollars_per_hour: dollars(wire.dollars_per_hour),
        same_domain: &wire.same_domain,
    };
    Ok(Answer::at(answer.at, body).into_response())
}
