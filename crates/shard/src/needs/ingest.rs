//! The way of a roll-up into the table: size, demand gate, arrival; then, under
//! the lock, guard and replacement.

use bigfleet_model::{ClusterId, Need, gate};
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;

/// Most needs of one roll-up. More than a whole shard is built for, so that one
/// cluster cannot fill the memory of all.
pub(super) const MAX_NEEDS: usize = 1_000_000;

/// Checks a roll-up and stamps its arrival; the text of a refusal names the field.
pub(super) fn checked(
    cluster: &ClusterId,
    message: ClusterCapacityNeeds,
    wall_now: i64,
    max_needs: usize,
) -> Result<Vec<Need>, String> {
    let count = message.needs.len();
    if count > max_needs {
        return Err(format!(
            "needs: {count} entries are more than the {max_needs} of one roll-up; \
             aggregate requests of one profile into one need"
        ));
    }
    let mut roll_up = gate::demand::roll_up(cluster, message).map_err(|error| error.to_string())?;
    let arrival = arrival(roll_up.timestamp, wall_now);
    for need in &mut roll_up.needs {
        need.arrival = arrival;
    }
    Ok(roll_up.needs)
}

/// A clock ahead of ours must not make its cluster wait behind the others for
/// ever; one that says nothing is as old as we see it.
fn arrival(timestamp: i64, wall_now: i64) -> i64 {
    if timestamp <= 0 { wall_now } else { timestamp.min(wall_now) }
}

/// Needs that stay keep the arrival they had. Both are in identity order.
pub(super) fn keep_arrivals(before: &[Need], now: &mut [Need]) {
    let mut before = before.iter().peekable();
    for need in now {
        while before.next_if(|known| identity(known) < identity(need)).is_some() {}
        if let Some(known) = before.next_if(|known| identity(known) == identity(need)) {
            need.arrival = known.arrival;
        }
    }
}

fn identity(need: &Need) -> (&str, &str) {
    (need.profile.fingerprint(), &need.group)
}
