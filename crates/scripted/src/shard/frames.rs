//! Frames that tests send often.

use bigfleet_wire::v1alpha1::{
    Acknowledgement, BootstrapRequest, MachineState, NodeStateUpdate, ReclaimInstruction,
    Resources, shard_message::Payload as Down,
};

use super::Shard;
use crate::Error;

impl Shard {
    /// Acks with this echo and nothing else.
    pub async fn ack(&self, echo: &str) -> Result<(), Error> {
        self.send(Down::Ack(Acknowledgement { echo: echo.to_owned(), ..Default::default() })).await
    }

    /// Says that the replay is complete.
    pub async fn resync(&self) -> Result<(), Error> {
        self.ack("resync").await
    }

    /// Confirms the roll-up of this timestamp.
    pub async fn confirm(&self, rollup_timestamp_unix_nanos: i64) -> Result<(), Error> {
        let echo = "rollup".to_owned();
        let ack = Acknowledgement { echo, rollup_timestamp_unix_nanos, ..Default::default() };
        self.send(Down::Ack(ack)).await
    }

    /// Tells where a machine of this cluster stands; [`Shard::send`] a whole frame to
    /// say more of it.
    pub async fn machine(
        &self,
        cluster_id: &str,
        machine_id: &str,
        state: MachineState,
    ) -> Result<(), Error> {
        self.send(Down::NodeStateUpdate(Self::node(cluster_id, machine_id, state))).await
    }

    /// The frame of [`Shard::machine`]: four processors and 16 GiB.
    #[must_use]
    pub fn node(cluster_id: &str, machine_id: &str, state: MachineState) -> NodeStateUpdate {
        let resources = [("cpu", "4"), ("memory", "16Gi")];
        let resources = resources.map(|(name, text)| (name.to_owned(), text.to_owned()));
        NodeStateUpdate {
            supersedes_key: format!("node:{machine_id}"),
            machine_id: machine_id.to_owned(),
            cluster_id: cluster_id.to_owned(),
            state: state.into(),
            resources: Some(Resources { resources: resources.into() }),
            ..Default::default()
        }
    }

    /// Takes machines back.
    pub async fn reclaim(
        &self,
        instruction_id: &str,
        nodes: &[&str],
        grace_period_seconds: i64,
    ) -> Result<(), Error> {
        let instruction = ReclaimInstruction {
            instruction_id: instruction_id.to_owned(),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            grace_period_seconds,
            preemptor_priority: 0,
        };
        self.send(Down::ReclaimInstruction(instruction)).await
    }

    /// Asks for that many blobs, with the ids `<prefix>0`, `<prefix>1`, …
    pub async fn bootstrap(
        &self,
        cluster_id: &str,
        prefix: &str,
        count: usize,
    ) -> Result<(), Error> {
        for index in 0..count {
            let request = BootstrapRequest {
                request_id: format!("{prefix}{index}"),
                cluster_id: cluster_id.to_owned(),
                machine_id: format!("{prefix}machine-{index}"),
                ..Default::default()
            };
            self.send(Down::BootstrapRequest(request)).await?;
        }
        Ok(())
    }
}
