//! The command channel: how a host is told to join and to leave. The host's image brings
//! three executables in `/opt/bigfleet`, each idempotent on the operation's id:
//!
//! | Call | Does |
//! |---|---|
//! | `bootstrap OPERATION CLUSTER < blob` | joins the cluster |
//! | `ready OPERATION CLUSTER` | prints `ready` once the node's Ready condition is True, else anything else |
//! | `drain OPERATION CLUSTER SECONDS` | evicts for so long, then leaves the cluster; 0 leaves at once |
//!
//! What joins a host to a cluster lives under `/run`: a power cycle forgets it.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use bigfleet_provider_kit::{CloudError, Op};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    api::{ApiError, Meaning},
    json::JsonService,
};

const FIRST_POLL: Duration = Duration::from_millis(50);
const LAST_POLL: Duration = Duration::from_secs(2);
/// Least and most seconds that the service takes as a timeout.
const LEAST_TIMEOUT: u64 = 30;
const MOST_TIMEOUT: u64 = 172_800;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0; what it printed.
    Done(String),
    /// It failed, was not delivered, or did not end in time; in a few words, none of
    /// which the host chose: its output may hold a secret.
    Failed(String),
}

/// The channel.
#[derive(Debug)]
pub struct Commands {
    service: JsonService,
    part_bytes: usize,
}

impl Commands {
    /// With blobs in parts of so many bytes.
    #[must_use]
    pub fn new(service: JsonService, part_bytes: usize) -> Self {
        Self { service, part_bytes }
    }

    /// Hands over the blob and joins.
    pub async fn bootstrap(
        &self,
        op: &Op,
        instance: &str,
        cluster: &str,
        blob: &[u8],
    ) -> Result<Outcome, CloudError> {
        let file = format!("/run/bigfleet/{}", quote(op.id.as_str()));
        for (number, part) in blob.chunks(self.part_bytes).enumerate() {
            let text = STANDARD.encode(part);
            let script = format!(
                "set -eu; umask 077; mkdir -p /run/bigfleet; \
                 printf %s {text} | base64 -d > {file}.{number:06}"
            );
            match self.run(op, instance, "bigfleet part", &script, op.deadline).await? {
                Outcome::Done(_) => {}
                failed @ Outcome::Failed(_) => return Ok(failed),
            }
        }
        // Without a blob there are no parts; `nullglob` is not in sh.
        let script = format!(
            "set -u; umask 077; mkdir -p /run/bigfleet; [ -e {file}.done ] && exit 0; \
             cat {file}.[0-9]* 2>/dev/null | /opt/bigfleet/bootstrap {op} {cluster}; code=$?; \
             rm -f {file}.[0-9]*; [ $code = 0 ] && touch {file}.done; exit $code",
            op = quote(op.id.as_str()),
            cluster = quote(cluster),
        );
        self.run(op, instance, "bigfleet bootstrap", &script, op.deadline).await
    }

    /// Whether the host saw its node Ready.
    pub async fn ready(&self, op: &Op, instance: &str, cluster: &str) -> Result<bool, CloudError> {
        let (operation, cluster) = (quote(op.id.as_str()), quote(cluster));
        let script = format!("/opt/bigfleet/ready {operation} {cluster}");
        match self.run(op, instance, "bigfleet ready", &script, op.deadline).await? {
            Outcome::Done(printed) => Ok(printed.trim() == "ready"),
            Outcome::Failed(_) => Ok(false),
        }
    }

    /// Leaves the cluster, orderly for so long; waits until `until`.
    pub async fn drain(
        &self,
        op: &Op,
        instance: &str,
        cluster: &str,
        grace: Duration,
        until: Instant,
    ) -> Result<Outcome, CloudError> {
        let (operation, cluster) = (quote(op.id.as_str()), quote(cluster));
        let seconds = grace.as_secs();
        let script = format!("/opt/bigfleet/drain {operation} {cluster} {seconds}");
        self.run(op, instance, "bigfleet drain", &script, until).await
    }

    async fn run(
        &self,
        op: &Op,
        instance: &str,
        comment: &str,
        script: &str,
        until: Instant,
    ) -> Result<Outcome, CloudError> {
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        let timeout = left.clamp(LEAST_TIMEOUT, MOST_TIMEOUT);
        let body = json!({
            "DocumentName": "AWS-RunShellScript",
            "InstanceIds": [instance],
            "Comment": comment,
            "TimeoutSeconds": timeout,
            "Parameters": {"commands": [script], "executionTimeout": [timeout.to_string()]},
        });
        let sent = self.service.call("SendCommand", &body).await?;
        let command = sent.get("Command").and_then(|command| command.get("CommandId")?.as_str());
        let command = command.ok_or_else(|| {
            CloudError::Retry("SendCommand: cannot read the answer: no CommandId".to_owned())
        })?;
        let question = json!({"CommandId": command, "InstanceId": instance});
        let mut pause = FIRST_POLL;
        loop {
            tokio::select! {
                () = op.cancelled.cancelled() => {
                    return Err(CloudError::Retry(format!("{comment}: given up")));
                }
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_POLL);
            match self.service.call("GetCommandInvocation", &question).await {
                Ok(answer) => {
                    if let Some(outcome) = outcome(comment, &answer) {
                        return Ok(outcome);
                    }
                }
                // Not visible so far.
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= until {
                return Ok(Outcome::Failed(format!("{comment}: not ended in time")));
            }
        }
    }
}

fn is_passing(error: &ApiError) -> bool {
    matches!(error.meaning(), Meaning::NotConnected | Meaning::Throttled | Meaning::Unavailable)
}

/// None while it runs.
fn outcome(comment: &str, answer: &Value) -> Option<Outcome> {
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("Status") {
        "Pending" | "InProgress" | "Delayed" | "Cancelling" => None,
        "Success" => Some(Outcome::Done(text("StandardOutputContent").to_owned())),
        status => {
            let code = answer.get("ResponseCode").and_then(Value::as_i64).unwrap_or(-1);
            Some(Outcome::Failed(format!("{comment}: {status}, exit code {code}")))
        }
    }
}

/// One word of a shell, whatever it holds.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes_its_quotes() {
        assert_eq!(quote("c-1"), "'c-1'");
        assert_eq!(quote("a'; rm -rf /; '"), r"'a'\''; rm -rf /; '\'''");
    }

    #[test]
    fn the_outcome_tells_no_word_of_the_host() {
        let answer = json!({
            "Status": "Failed", "ResponseCode": 3,
            "StandardOutputContent": "secret", "StandardErrorContent": "secret"
        });
        let Some(Outcome::Failed(text)) = outcome("bigfleet bootstrap", &answer) else { panic!() };
        assert_eq!(text, "bigfleet bootstrap: Failed, exit code 3");
        assert_eq!(outcome("x", &json!({"Status": "InProgress"})), None);
    }
}
