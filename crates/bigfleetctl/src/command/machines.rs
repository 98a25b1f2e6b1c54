//! `machines`: those of a shard, or one with what happened to it.

use bigfleet_wire::v1alpha1::{
    GetMachineRequest, ListMachinesRequest, MachineState, MachineTransition, MachineView,
};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Format, Row},
    shards::{self, Select, Shard},
    text, when,
};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One machine, with its last transitions
    #[arg(value_name = "MACHINE")]
    id: Option<String>,
    #[command(flatten)]
    shard: Select,
    /// Only in these states: idle, configured, failed, …
    #[arg(long, value_delimiter = ',', value_parser = state)]
    state: Vec<MachineState>,
    /// Only of this cluster
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    cluster: String,
    /// Only of this instance type
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    instance_type: String,
    /// Only in this zone
    #[arg(long, default_value = "", hide_default_value = true)]
    zone: String,
    /// Only ids that begin so
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    id_prefix: String,
    /// Only on this host
    #[arg(long, value_name = "REF", default_value = "", hide_default_value = true)]
    host_ref: String,
    /// Only with an error
    #[arg(long)]
    with_error: bool,
    /// At most so many; 0 is all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
}

fn state(name: &str) -> Result<MachineState, String> {
    let full = format!("MACHINE_STATE_{}", name.to_uppercase().replace('-', "_"));
    let known =
        MachineState::from_str_name(&full).filter(|state| *state != MachineState::Unspecified);
    known.ok_or_else(|| {
        "write speculative, creating, idle, configuring, configured, draining, deleting or failed"
            .to_owned()
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineRow {
    id: String,
    state: String,
    since: Option<String>,
    instance_type: String,
    zone: String,
    capacity_type: String,
    price_per_hour: f64,
    cluster: String,
    assigned_priority: i32,
    interruption_penalty_dollars: Option<f64>,
    reclamation_penalty_dollars: Option<f64>,
    in_flight: String,
    host: String,
    last_error: String,
    assigned_fingerprint: String,
    assigned_group: String,
    #[serde(skip)]
    age: String,
}

impl MachineRow {
    fn new(view: MachineView, now: i64) -> Self {
        let machine = view.machine.unwrap_or_default();
        Self {
            state: text::state(machine.state),
            since: when::exact(view.since_unix_nanos),
            capacity_type: text::capacity_type(machine.capacity_type),
            id: machine.id,
            instance_type: machine.instance_type,
            zone: machine.zone,
            price_per_hour: machine.price_per_hour,
            cluster: machine.cluster,
            assigned_priority: view.assigned_priority,
            interruption_penalty_dollars: text::amount(view.assigned_interruption_penalty_dollars),
            reclamation_penalty_dollars: text::amount(view.assigned_reclamation_penalty_dollars),
            in_flight: view.in_flight,
            host: machine.host.map(|host| host.r#ref).unwrap_or_default(),
            last_error: machine.last_error,
            assigned_fingerprint: view.assigned_fingerprint,
            assigned_group: text::group(&view.assigned_group),
            age: when::age(now, view.since_unix_nanos),
        }
    }
}

impl Row for MachineRow {
    const HEAD: &'static [&'static str] = &[
        "MACHINE", "STATE", "SINCE", "TYPE", "ZONE", "CAPACITY", "CLUSTER", "PRIORITY", "ACTION",
        "ERROR",
    ];
    const WIDE: &'static [&'static str] = &["PRICE/H", "HOST", "FINGERPRINT"];

    fn cells(&self) -> Vec<String> {
        let priority = self.assigned_priority.to_string();
        vec![
            self.id.clone(),
            self.state.clone(),
            self.age.clone(),
            self.instance_type.clone(),
            text::or_dash(&self.zone),
            self.capacity_type.clone(),
            text::or_dash(&self.cluster),
            if self.cluster.is_empty() { "—".to_owned() } else { priority },
            text::or_dash(&self.in_flight),
            text::or_dash(&text::cut(&self.last_error, 60)),
        ]
    }

    fn wide(&self) -> Vec<String> {
        let price = text::dollars(self.price_per_hour);
        vec![price, text::or_dash(&self.host), text::or_dash(&self.assigned_fingerprint)]
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransitionRow {
    time: Option<String>,
    from: String,
    to: String,
    cause: String,
    of_sequence: i64,
    cluster: String,
    error: String,
    #[serde(skip)]
    at: i64,
}

impl From<MachineTransition> for TransitionRow {
    fn from(transition: MachineTransition) -> Self {
        Self {
            time: when::exact(transition.time_unix_nanos),
            from: text::state(transition.from),
            to: text::state(transition.to),
            cause: transition.cause,
            of_sequence: transition.of_sequence,
            cluster: transition.cluster_id,
            error: transition.error,
            at: transition.time_unix_nanos,
        }
    }
}

impl Row for TransitionRow {
    const HEAD: &'static [&'static str] =
        &["TIME", "FROM", "TO", "CAUSE", "DECISION", "CLUSTER", "ERROR"];

    fn cells(&self) -> Vec<String> {
        let decision =
            if self.of_sequence == 0 { String::new() } else { self.of_sequence.to_string() };
        vec![
            when::instant(self.at),
            self.from.clone(),
            self.to.clone(),
            self.cause.clone(),
            text::or_dash(&decision),
            text::or_dash(&self.cluster),
            text::or_dash(&self.error),
        ]
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OneMachine {
    #[serde(flatten)]
    machine: MachineRow,
    transitions: Vec<TransitionRow>,
}

pub(super) async fn run(fleet: &mut Fleet, console: &mut Console, args: Args) -> Result<(), Error> {
    let shard = shards::serving(fleet, console, &args.shard, &args.cluster).await?;
    if let Some(id) = args.id {
        return one(fleet.format, console, &shard, id).await;
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut request = ListMachinesRequest {
        states: args.state.into_iter().map(Into::into).collect(),
        cluster_id: args.cluster,
        instance_type: args.instance_type,
        zone: args.zone,
        id_prefix: args.id_prefix,
        host_ref: args.host_ref,
        with_error: args.with_error,
        page_size: i32::try_from(limit.min(1000)).unwrap_or(1000),
        page_token: Vec::new(),
    };
    let now = when::now();
    let mut rows = Vec::new();
    let mut rpc = shard.observe();
    let total = loop {
        let page = rpc.list_machines(shard.request(request.clone()));
        let page = shard.answer("machines", page).await?;
        rows.extend(page.machines.into_iter().map(|view| MachineRow::new(view, now)));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() || rows.len() >= limit {
            break page.total;
        }
    };
    rows.truncate(limit);
    output::list(console, fleet.format, &rows)?;
    if usize::try_from(total).is_ok_and(|total| total > rows.len()) {
        console.note(&format!("note: {} of {total} machines; --limit 0 shows all", rows.len()));
    }
    Ok(())
}

async fn one(
    format: Format,
    console: &mut Console,
    shard: &Shard,
    id: String,
) -> Result<(), Error> {
    let mut rpc = shard.observe();
    let request = shard.request(GetMachineRequest { machine_id: id });
    let answer = shard.answer("machine", rpc.get_machine(request)).await?;
    let machine = MachineRow::new(answer.view.unwrap_or_default(), when::now());
    let transitions: Vec<TransitionRow> = answer.transitions.into_iter().map(Into::into).collect();
    if matches!(format, Format::Json | Format::Yaml) {
        return console.text(&output::document(format, &OneMachine { machine, transitions })?);
    }
    output::list(console, Format::Wide, &[machine])?;
    console.line("")?;
    output::list(console, format, &transitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_people_do() {
        assert_eq!(state("idle"), Ok(MachineState::Idle));
        assert_eq!(state("FAILED"), Ok(MachineState::Failed));
        assert!(state("unspecified").is_err() && state("busy").is_err());
    }
}
