//! Would it fit now?

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{extract::State, response::IntoResponse};
use bigfleet_plain::need::NeedText;
use bigfleet_wire::v1alpha1::{WhatIfPick, WhatIfRequest, WhatIfResponse};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Response};

use super::Shared;
use crate::{
    api::{Answer, Params, Refusal, Source, params::required},
    auth::Viewer,
    source::shards::{Shard, WITHIN},
    view::{dollars, state, unmet_detail, unmet_reason, vector},
};

/// A shard answers one a second to an identity, and all viewers share ours.
const APART: Duration = Duration::from_millis(1_050);

/// When each shard may be asked again.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<Instant>>>>>);

impl Turns {
    async fn ask(&self, shard: &Shard, request: WhatIfRequest) -> Result<WhatIfResponse, Refusal> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(shard.id.clone()).or_default().clone()
        };
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
    machine_id: &'a str,
    state: &'static str,
    effective_cost: Option<f64>,
    cluster_id: Option<&'a str>,
    priority: i32,
}

fn pick<'a>(wire: &'a WhatIfPick, viewer: &Viewer) -> Pick<'a> {
    Pick {
        machine_id: &wire.machine_id,
        state: state(wire.state),
        effective_cost: dollars(wire.effective_cost),
        cluster_id: Some(wire.cluster_id.as_str()).filter(|cluster| viewer.sees(cluster)),
        priority: wire.priority,
    }
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
    let at = Timestamp::now();
    let shard = app.sources.shards.find(id).await?;
    let wire = app.whatif_turns.ask(&shard, WhatIfRequest { cluster_id, need }).await?;
    let (reason, detail) = (unmet_reason(wire.unmet_reason), unmet_detail(wire.unmet_detail));
    let body = Verdict {
        shard: id,
        cycle: wire.cycle,
        satisfied: wire.satisfied,
        reason: if wire.satisfied { None } else { detail.or(reason) },
        unmet_reason: reason,
        unmet_detail: detail,
        residual_deficit: vector(wire.residual_deficit.as_ref()),
        picks: wire.picks.iter().map(|one| pick(one, &viewer)).collect(),
        victims: wire.victims.iter().map(|one| pick(one, &viewer)).collect(),
        dollars_per_hour: dollars(wire.dollars_per_hour),
        same_domain: &wire.same_domain,
    };
    Ok(Answer::at(at, body).into_response())
}
