//! Scenarios of clouds that misbehave.

mod backoff;
pub(crate) mod brown_out;
pub(crate) mod spot;
pub(crate) mod stock_out;
pub(crate) mod zone;

use super::view::View;
use crate::{
    cluster::workload::{Class, Workload},
    eyes::Decision,
};

const A: usize = 0;
const B: usize = 1;
const BATCH: Workload = Workload::Plain(Class::Batch);
const PRODUCTION: Workload = Workload::Plain(Class::Production);
const CRITICAL: Workload = Workload::Plain(Class::Critical);

/// Whether all pods of both clusters of the first shard run.
fn all_run(view: &View) -> Result<(), String> {
    [A, B].into_iter().try_for_each(|cluster| view.all_run(cluster))
}

/// A purchase for which something cheaper was at hand.
fn dearer(bought: &[Decision]) -> Option<String> {
    let found = bought.iter().map(|it| &it.record).find(|record| {
        record.runner_up_cost > 0.0 && record.effective_cost > record.runner_up_cost
    })?;
    let (cost, other) = (found.effective_cost, found.runner_up_cost);
    Some(format!("{} at ${cost:.3}, another was ${other:.3}", found.machine_id))
}
