//! Money of one shard by cluster and class, on demand.

use std::{borrow::Cow, time::Duration};

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::ListMachinesRequest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    super::Shared,
    flag::Flag,
    ledger::{Ledger, Line},
};
use crate::{
    Holds,
    api::{Answer, Params, Refusal, params::required},
    auth::Viewer,
    source::shards::Shard,
    view::instant,
};

/// Machines that are looked at; past these the answer says so.
const MOST: usize = 200_000;

/// Time for all of them.
const WITHIN: Duration = Duration::from_secs(30);

/// Which shard.
#[derive(Deserialize)]
pub(crate) struct Which {
    #[serde(default)]
    shard: String,
}

/// What the machines of a shard come to.
#[derive(Debug)]
pub(crate) struct Money {
    cycle: i64,
    computed_at: i64,
    machines: usize,
    truncated: bool,
    lines: Vec<Line>,
    /// Of all clusters.
    flags: Vec<Flag>,
    ledger: Ledger,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    machines: Option<usize>,
    truncated: bool,
    idle_hold_seconds: HoldSeconds,
    rows: Vec<&'a Line>,
    red_flags: Cow<'a, [Flag]>,
}

/// What is taken for the shard's holds of idle machines; none is for ever.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HoldSeconds {
    on_demand: Option<f64>,
    spot: Option<f64>,
}

impl From<Holds> for HoldSeconds {
    fn from(holds: Holds) -> Self {
        let seconds = |hold: Duration| (!hold.is_zero()).then_some(hold.as_secs_f64());
        Self { on_demand: seconds(holds.on_demand), spot: seconds(holds.spot) }
    }
}

/// Who pays what in this shard?
pub(crate) async fn shard(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let id = required("shard", &which.shard)?;
    let shard = app.sources.shards.find(id).await?;
    let holds = app.facts.holds;
    let money = app.money.get(id.to_owned(), WITHIN, || read(shard, holds)).await?;
    let rows = money.value.lines.iter().filter(|line| viewer.sees(&line.cluster)).collect();
    let red_flags = if viewer.is_scoped() {
        Cow::Owned(money.value.ledger.flags(id, |cluster| viewer.sees(cluster)))
    } else {
        Cow::Borrowed(money.value.flags.as_slice())
    };
    let body = Body {
        shard: id,
        cycle: money.value.cycle,
        computed_at_unix_nanos: instant(money.value.computed_at),
        // Machines of others must not even be counted.
        machines: (!viewer.is_scoped()).then_some(money.value.machines),
        truncated: money.value.truncated,
        idle_hold_seconds: holds.into(),
        rows,
        red_flags,
    };
    Ok(Answer::at(money.at, body).into_response())
}

async fn read(shard: Shard, holds: Holds) -> Result<Money, Refusal> {
    let (mut ledger, mut as_of, mut machines) = (Ledger::new(holds), (0, 0), 0);
    let mut page_token = Vec::new();
    let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
    let truncated = loop {
        let request = ListMachinesRequest { page_token, ..ListMachinesRequest::default() };
        let page = shard.observe().list_machines(shard.request(request)).await;
        let page = page.map_err(|status| shard.refused(&status))?.into_inner();
        as_of = as_of.max((page.cycle, page.computed_at_unix_nanos));
        machines += page.machines.len();
        page.machines.iter().for_each(|view| ledger.add(view, now));
        page_token = page.next_page_token;
        if page_token.is_empty() || page.machines.is_empty() {
            break false;
        }
        if machines >= MOST {
            break true;
        }
    };
    let (lines, flags) = (ledger.lines(), ledger.flags(&shard.id, |_| true));
    let (cycle, computed_at) = as_of;
    Ok(Money { cycle, computed_at, machines, truncated, lines, flags, ledger })
}
