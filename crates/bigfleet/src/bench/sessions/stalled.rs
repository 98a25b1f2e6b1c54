//! Operators that send and never read.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_scripted::operator::{Operator, OperatorOptions};
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use tokio::{task::JoinSet, time::sleep};

/// Bytes that a stalled operator lets be under way.
const WINDOW: u32 = 4096;
/// Between two roll-ups of one.
const PACE: Duration = Duration::from_millis(100);

/// They connect, stop reading, and go on sending; whoever is thrown out comes back.
/// Dropping the answer ends them.
pub(super) fn operators(addr: &str, count: usize) -> JoinSet<()> {
    (0..count).map(|number| one(addr.to_owned(), format!("stalled-{number}"))).collect()
}

async fn one(addr: String, cluster: String) {
    let options = OperatorOptions::new(&*cluster).window(WINDOW).without_record();
    let mut operator = Operator::new(&addr, &Security::Plaintext, options);
    loop {
        if operator.reconnect().await.is_err() {
            sleep(PACE).await;
            continue;
        }
        operator.stall();
        // What ended a stalled session is read by nobody: the sends tell.
        for _ in 0..400 {
            let roll_up = ClusterCapacityNeeds {
                cluster_id: cluster.clone(),
                timestamp_unix_nanos: operator.next_timestamp(),
                needs: Vec::new(),
            };
            if operator.send_roll_up(roll_up).is_err() {
                break;
            }
            sleep(PACE).await;
        }
    }
}
