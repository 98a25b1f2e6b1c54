//! What goes wrong, and how it heals.

use std::time::Duration;

use bigfleet_scripted::random::Random;
use bigfleet_testkit::proxy::{Proxy, Way};

use crate::site::{Site, Ways};

/// Something that is wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The API server is killed.
    Server,
    /// SIGKILL, as for those below.
    Operator,
    PodController,
    Shard,
    /// One way is not open.
    Partition(Between, Way),
}

/// Who dials, and whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    OperatorAndServer,
    PodControllerAndServer,
    OperatorAndShard,
    ShardAndProvider,
}

impl Between {
    fn proxy(self, ways: &Ways) -> &Proxy {
        match self {
            Self::OperatorAndServer => &ways.operator_to_server,
            Self::PodControllerAndServer => &ways.pod_controller_to_server,
            Self::OperatorAndShard => &ways.operator_to_shard,
            Self::ShardAndProvider => &ways.shard_to_provider,
        }
    }
}

impl Fault {
    /// One that does not touch what another of these has already broken.
    pub(crate) fn draw(draw: &mut Random, others: &[Self]) -> Self {
        loop {
            let fault = Self::any(draw);
            if !others.iter().any(|other| other.subject() == fault.subject()) {
                return fault;
            }
        }
    }

    fn any(draw: &mut Random) -> Self {
        match draw.below(8) {
            0 => Self::Server,
            1 => Self::Operator,
            2 => Self::PodController,
            3 => Self::Shard,
            _ => {
                let between = match draw.below(4) {
                    0 => Between::OperatorAndServer,
                    1 => Between::PodControllerAndServer,
                    2 => Between::OperatorAndShard,
                    _ => Between::ShardAndProvider,
                };
                let way = match draw.below(3) {
                    0 => Way::Cut,
                    1 => Way::Silent,
                    _ => Way::Slow(Duration::from_millis(20 + draw.below(180))),
                };
                Self::Partition(between, way)
            }
        }
    }

    /// What is broken, whichever way.
    fn subject(self) -> Self {
        match self {
            Self::Partition(between, _) => Self::Partition(between, Way::Cut),
            other => other,
        }
    }

    /// How it is called in the summary of a run.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Partition(between, Way::Slow(_)) => format!("{between:?} slow"),
            Self::Partition(between, way) => format!("{between:?} {way:?}").to_lowercase(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    pub(crate) async fn begin(self, site: &mut Site) {
        match self {
            Self::Server => {
                let plane = site.cluster.plane();
                tokio::task::block_in_place(|| plane.stop_apiserver());
            }
            Self::Operator => site.operator.process().kill().await,
            Self::PodController => site.pod_controller.process().kill().await,
            Self::Shard => site.shard.process().kill().await,
            Self::Partition(between, way) => between.proxy(&site.ways).set(way),
        }
    }

    /// What was killed is started; nobody waits for it to be ready, since it may need something
    /// else that is still wrong.
    pub(crate) async fn end(self, site: &mut Site) {
        match self {
            Self::Server => {
                let plane = site.cluster.plane();
                tokio::task::block_in_place(|| plane.start_apiserver()).unwrap();
            }
            Self::Operator => site.start_operator().await,
            Self::PodController => site.start_pod_controller().await,
            Self::Shard => site.start_shard().await,
            Self::Partition(between, _) => between.proxy(&site.ways).set(Way::Open),
        }
    }
}
