//! One of several replicas acts: leader election on a `coordination.k8s.io` Lease.
//!
//! Time is told by this process's monotonic clock alone. Another's lease has run out when its
//! record was seen unchanged for its whole duration, whatever wall clocks say.

mod elector;
mod record;
mod sight;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::Paced;

pub use record::Record;
pub use sight::{Sight, read};

/// Where this process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Another holds the lease, or nobody does yet.
    Standby,
    /// This process holds the lease.
    Leading,
    /// This process held the lease and cannot renew it: the API server is away, and nobody else
    /// was seen with it. Go on with what runs, begin nothing new.
    Unsure,
}

/// Which lease, for whom, and its times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Who holds it; see [`identity`].
    pub identity: String,
    /// How long the others wait for a holder that has gone silent.
    pub lease_duration: Duration,
    /// How long a holder tries to renew before it is [`Leadership::Unsure`].
    pub renew_deadline: Duration,
    /// Between two tries.
    pub retry_period: Duration,
}

impl Settings {
    /// 15 s, 10 s and 2 s.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        namespace: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// A name for this life of the process: `$POD_NAME` or the host's name, and some random letters.
///
/// A container that starts anew in its pod must not pass for its predecessor: what that one said
/// of itself in the lease's annotations does not hold for it.
#[must_use]
pub fn identity() -> String {
    let name = ["POD_NAME", "HOSTNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok().filter(|name| !name.is_empty()))
        .unwrap_or_else(|| "process".to_owned());
    format!("{name}_{:08x}", getrandom::u32().unwrap_or_else(|_| std::process::id()))
}

/// Takes part in an election. Clones share one state.
#[derive(Debug, Clone)]
pub struct Elector {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    leadership: watch::Sender<Leadership>,
    /// Up to when nobody else can have taken the lease; none when not leading.
    safe_until: Mutex<Option<Instant>>,
    /// What the lease is to carry while we hold it.
    annotations: Mutex<BTreeMap<String, String>>,
    annotated: Notify,
}

impl Elector {
    /// An elector on standby.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                leadership: watch::Sender::new(Leadership::Standby),
                safe_until: Mutex::default(),
                annotations: Mutex::default(),
                annotated: Notify::new(),
            }),
        }
    }

    /// Takes part until the stop is asked for, and gives the lease back then.
    ///
    /// Ask this stop only when what the leader does has stopped: the next one starts at once.
    pub async fn run(&self, paced: Paced, shutdown: Shutdown) {
        elector::run(&self.shared, &paced, &shutdown).await;
    }

    /// Where this process stands, and every change of it.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    /// Whether this process leads at this moment: a process that was stopped for a while must not
    /// believe what it knew before.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        let safe_until = *self.shared.safe_until.lock().unwrap_or_else(PoisonError::into_inner);
        *self.shared.leadership.borrow() == Leadership::Leading
            && safe_until.is_some_and(|until| Instant::now() < until)
    }

    /// The name this process holds the lease under.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.shared.settings.identity
    }

    /// Puts an annotation on the lease as long as this process holds it; written at once.
    ///
    /// Forgotten when another takes the lease over: it was said by the holder of that time.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let mut annotations =
            self.shared.annotations.lock().unwrap_or_else(PoisonError::into_inner);
        let value = value.into();
        if annotations.insert(key.into(), value.clone()) != Some(value) {
            self.shared.annotated.notify_one();
        }
    }
}

impl Shared {
    fn stand(&self, leadership: Leadership, safe_until: Option<Instant>) {
        *self.safe_until.lock().unwrap_or_else(PoisonError::into_inner) = safe_until;
        let changed = self.leadership.send_if_modified(|current| {
            let changed = *current != leadership;
            *current = leadership;
            changed
        });
        if changed {
            let (lease, identity) = (&self.settings.name, &self.settings.identity);
            tracing::info!(lease, identity, ?leadership, "leadership changed");
        }
    }
}
