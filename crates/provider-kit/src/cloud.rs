//! What a provider author writes: one trait (provider chapter §9).

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::{CapacityType, Machine};
use bigfleet_provider::protocol::OperationId;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handle::Handle;

/// A backend that turns slots into hosts. Everything else (fencing, idempotency,
/// timeouts, durability, loss, repair, List) is the kit's.
///
/// Every method must be idempotent on [`Op::id`]: after a restart or a `Retry` it
/// is called again for the same operation. A method should return soon after
/// [`Op::cancelled`] fires; what it returns then is discarded, but for the host of
/// a `create`, which is kept and destroyed.
pub trait Cloud: Send + Sync + 'static {
    /// What the backend can do; asked once, at the start.
    fn caps(&self) -> Caps;

    /// Takes the kit's handle, to raise notices and to ask for a sweep. Called once,
    /// before anything else.
    fn attach(&self, handle: Handle) {
        drop(handle);
    }

    /// Adds metrics of its own; they get the prefix `bigfleet_provider_`. Called once,
    /// after the start.
    fn register_metrics(&self, registry: &mut Registry) {
        let _ = registry;
    }

    /// All slots, with the hosts that exist. Called at the start and in each sweep.
    fn describe(&self) -> impl Future<Output = Result<Vec<Offer>, CloudError>> + Send;

    /// Brings a host for the slot.
    fn create(
        &self,
        op: &Op,
        machine: &Machine,
    ) -> impl Future<Output = Result<Host, CloudError>> + Send;

    /// Hands the bootstrap blob, a join secret, to the host.
    fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
        blob: &[u8],
    ) -> impl Future<Output = Result<(), CloudError>> + Send;

    /// Whether the node has joined the cluster and its Ready condition was seen True
    /// after this operation began. Polled until it says so. There is no default: an
    /// early yes is silent starvation.
    fn ready(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
    ) -> impl Future<Output = Result<Ready, CloudError>> + Send;

    /// Takes the host out of its cluster: orderly within the grace, by force after it.
    fn drain(
        &self,
        op: &Op,
        machine: &Machine,
        grace: Duration,
    ) -> impl Future<Output = Result<(), CloudError>> + Send;

    /// Elastic capacity: leaves no host of this slot, also where `machine.host` is not
    /// known because a Create failed half-way. Fixed capacity: recycles the host, so
    /// that nothing of the last cluster is left on it.
    fn destroy(
        &self,
        op: &Op,
        machine: &Machine,
    ) -> impl Future<Output = Result<(), CloudError>> + Send;
}

/// What a backend can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Delete works; otherwise it is UNIMPLEMENTED.
    pub destroy: bool,
    /// All capacity is fixed: repair recycles a host instead of destroying it.
    pub fixed: bool,
    /// An interrupted create, drain or destroy may be called again after a restart.
    /// Otherwise the machine fails with "interrupted by restart".
    pub resumable: bool,
    /// `ready` observes nodes. If not, it answers [`Ready::Unobservable`], and the
    /// server starts only with `--allow-ungated-configure`.
    pub observes_ready: bool,
}

/// One operation, as a method of [`Cloud`] sees it.
#[derive(Clone, Debug)]
pub struct Op {
    /// Unique for ever: fit for a backend's client token.
    pub id: OperationId,
    /// When the transition fails.
    pub deadline: Instant,
    /// Fires at the deadline and when the process stops.
    pub cancelled: CancellationToken,
    /// 1 at first, one more per `Retry`.
    pub attempt: u32,
}

/// Why a backend did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// For now: tried again within the transition's deadline.
    #[error("{0}")]
    Retry(String),
    /// No such machine to be had at present.
    #[error("out of stock: {0}")]
    OutOfStock(String),
    /// The account's limit.
    #[error("quota: {0}")]
    Quota(String),
    /// The host does not exist. For drain and destroy that is as good as done.
    #[error("host is gone: {0}")]
    Gone(String),
    /// For good.
    #[error("{0}")]
    Fatal(String),
}

impl CloudError {
    /// The metric label.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Retry(_) => "retry",
            Self::OutOfStock(_) => "out_of_stock",
            Self::Quota(_) => "quota",
            Self::Gone(_) => "gone",
            Self::Fatal(_) => "fatal",
        }
    }

    /// Whether waiting a little may help: the repair comes sooner then.
    pub const fn is_shortage(&self) -> bool {
        matches!(self, Self::OutOfStock(_) | Self::Quota(_))
    }
}

/// Whether a node has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Its Ready condition was seen True.
    Yes,
    /// Not so far.
    NotYet,
    /// Nobody here can tell.
    Unobservable,
}

/// A host that `create` brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// How the backend names it; never empty. Where a node comes to be, its
    /// `spec.providerID`.
    pub reference: String,
    /// What the slot only promised, if better known now.
    pub resources: Option<BTreeMap<String, String>>,
    /// As [`Host::resources`].
    pub allocatable: Option<BTreeMap<String, String>>,
}

impl Host {
    /// A host that is what its slot promised.
    #[must_use]
    pub fn new(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), ..Self::default() }
    }
}

/// One slot, as `describe` tells it. It cannot express lifecycle or binding: those
/// are the store's.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Stable for the life of the slot.
    pub id: String,
    /// The host that exists for it, by the backend's name.
    pub host: Option<String>,
    /// Never empty; never changes.
    pub instance_type: String,
    /// Never changes.
    pub zone: String,
    /// Never changes.
    pub capacity_type: CapacityType,
    /// Dollars an hour.
    pub price_per_hour: f64,
    /// An hour; above 0 for SPOT.
    pub interruption_probability: f64,
    /// Base shape, as Kubernetes quantities.
    pub resources: BTreeMap<String, String>,
    /// Real capacity, if known.
    pub allocatable: BTreeMap<String, String>,
    /// More attributes for matching.
    pub labels: BTreeMap<String, String>,
}
