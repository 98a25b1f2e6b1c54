//! `sessions`: the clusters of a shard.

use bigfleet_wire::v1alpha1::{ListSessionsRequest, SessionView};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Row},
    shards::{self, Select},
    text, when,
};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// Only this cluster
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    cluster: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    cluster: String,
    connected: bool,
    connected_since: Option<String>,
    last_rollup: Option<String>,
    needs: i32,
    rollups_held: i32,
    outbox_depth: i32,
    last_rejection: String,
    peer: String,
    protocol_version: String,
    features: Vec<String>,
    #[serde(skip)]
    ages: [String; 2],
}

impl SessionRow {
    fn new(view: SessionView, now: i64) -> Self {
        let (since, rollup) = (view.connected_since_unix_nanos, view.last_rollup_unix_nanos);
        Self {
            cluster: view.cluster_id,
            connected: view.connected,
            connected_since: when::exact(since),
            last_rollup: when::exact(rollup),
            needs: view.needs,
            rollups_held: view.rollups_held,
            outbox_depth: view.outbox_depth,
            last_rejection: view.last_rejection,
            peer: view.peer,
            protocol_version: view.protocol_version,
            features: view.features,
            ages: [since, rollup].map(|at| when::age(now, at)),
        }
    }
}

impl Row for SessionRow {
    const HEAD: &'static [&'static str] =
        &["CLUSTER", "STATE", "SINCE", "ROLLUP", "NEEDS", "HELD", "LAST_REJECTION"];
    const WIDE: &'static [&'static str] = &["OUTBOX", "PEER", "PROTOCOL", "FEATURES"];

    fn cells(&self) -> Vec<String> {
        let [since, rollup] = self.ages.clone();
        let state = if self.connected { "connected" } else { "away" };
        vec![
            self.cluster.clone(),
            state.to_owned(),
            since,
            rollup,
            self.needs.to_string(),
            self.rollups_held.to_string(),
            text::or_dash(&text::cut(&self.last_rejection, 60)),
        ]
    }

    fn wide(&self) -> Vec<String> {
        vec![
            self.outbox_depth.to_string(),
            text::or_dash(&self.peer),
            text::or_dash(&self.protocol_version),
            text::or_dash(&self.features.join(",")),
        ]
    }
}

pub(super) async fn run(fleet: &mut Fleet, console: &mut Console, args: Args) -> Result<(), Error> {
    let shard = shards::serving(fleet, console, &args.shard, &args.cluster).await?;
    let request = shard.request(ListSessionsRequest { cluster_id: args.cluster });
    let mut rpc = shard.observe();
    let list = shard.answer("sessions", rpc.list_sessions(request)).await?;
    let now = when::now();
    let rows: Vec<SessionRow> =
        list.sessions.into_iter().map(|view| SessionRow::new(view, now)).collect();
    output::list(console, fleet.format, &rows)
}
