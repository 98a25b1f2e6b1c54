//! A cloud that needs no account: the query API, the command channel, the queue, prices
//! and the advisor at one address. It knows the truth, so that tests can hold a provider
//! to it: at most one host per slot, no host without a record.
//!
//! All services share one port: calls with `x-amz-target` are JSON, the others are query
//! calls. `/admin/…` sets faults and tells the truth; hence loopback only.

mod admin;
mod auth;
mod faults;
mod hosts;
mod journal;
mod json;
mod query;
mod server;
mod world;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex},
};

pub use faults::Faults;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    config::{Account, Capacity, Ec2Config, Offering},
    flags::CloudFlags,
    sign::Credentials,
};

/// A type of the catalogue.
struct Type {
    name: &'static str,
    cpus: u64,
    memory_mib: u64,
    gpus: u64,
    /// Dollars an hour.
    list_price: f64,
    market_price: f64,
    /// The advisor's, of interruption.
    bucket: Option<u64>,
}

const CATALOGUE: [Type; 4] = [
    Type {
        name: "m6i.large",
        cpus: 2,
        memory_mib: 8192,
        gpus: 0,
        list_price: 0.107,
        market_price: 0.041,
        bucket: Some(0),
    },
    Type {
        name: "c6i.4xlarge",
        cpus: 16,
        memory_mib: 32_768,
        gpus: 0,
        list_price: 0.73,
        market_price: 0.29,
        bucket: Some(1),
    },
    Type {
        name: "r6i.xlarge",
        cpus: 4,
        memory_mib: 32_768,
        gpus: 0,
        list_price: 0.282,
        market_price: 0.098,
        bucket: None,
    },
    Type {
        name: "g5.xlarge",
        cpus: 4,
        memory_mib: 16_384,
        gpus: 1,
        list_price: 1.123,
        market_price: 0.47,
        bucket: Some(4),
    },
];
const REGION: &str = "standin-1";
const ZONES: [&str; 3] = ["standin-1a", "standin-1b", "standin-1c"];

/// Why there is no stand-in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its administration would be open to everybody.
    #[error("{0}: the stand-in listens on loopback only; give 127.0.0.1:PORT")]
    NotLoopback(SocketAddr),
    /// The address or the journal.
    #[error("{what}: {error}")]
    Io {
        /// Which one.
        what: String,
        /// Why not.
        error: std::io::Error,
    },
    /// A journal that is none.
    #[error("{path}: line {line}: {problem}; remove the file to start anew")]
    Journal {
        /// Which file.
        path: String,
        /// Where.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// What one stand-in is started with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where instances are remembered over restarts; none forgets them.
    pub file: Option<PathBuf>,
    /// How it behaves at first.
    pub faults: Faults,
}

/// A running one; it ends when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    addr: SocketAddr,
    _server: AbortOnDropHandle<()>,
}

impl StandIn {
    /// At this address, or at any free port.
    pub async fn start(settings: Settings, addr: Option<SocketAddr>) -> Result<Self, Error> {
        let addr = addr.unwrap_or_else(|| (IpAddr::V4(Ipv4Addr::LOCALHOST), 0).into());
        if !addr.ip().is_loopback() {
            return Err(Error::NotLoopback(addr));
        }
        let world = Arc::new(Mutex::new(world::World::open(settings)?));
        let io = |error| Error::Io { what: addr.to_string(), error };
        let listener = TcpListener::bind(addr).await.map_err(io)?;
        let addr = listener.local_addr().map_err(io)?;
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, server::router(world)).await {
                tracing::error!(%error, "the stand-in ended");
            }
        });
        Ok(Self { addr, _server: AbortOnDropHandle::new(server) })
    }

    /// Of every service.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// How a provider is pointed at it.
    #[must_use]
    pub fn flags(&self) -> CloudFlags {
        CloudFlags {
            ec2_endpoint: self.url(),
            pricing_endpoint: self.url(),
            command_endpoint: self.url(),
            queue_endpoint: self.url(),
            config: PathBuf::new(),
        }
    }
}

/// Whom it serves.
#[must_use]
pub fn credentials() -> Credentials {
    Credentials {
        access_key: "STANDIN".to_owned(),
        secret_key: "standin-secret-key".to_owned(),
        session_token: String::new(),
    }
}

/// Offerings of so many slots: three types in three zones, every fourth of them spot.
#[must_use]
pub fn config(slots: usize, url: &str) -> Ec2Config {
    let mut counts: BTreeMap<(usize, usize, Capacity), u32> = BTreeMap::new();
    for number in 0..slots {
        let capacity = if number % 4 == 3 { Capacity::Spot } else { Capacity::OnDemand };
        *counts.entry((number % 3, number / 3 % 3, capacity)).or_default() += 1;
    }
    let offering = |((instance_type, zone, capacity), count): ((usize, usize, Capacity), u32)| {
        let rack = ("topology.bigfleet/rack".to_owned(), format!("{}-r1", ZONES[zone]));
        Offering {
            instance_type: CATALOGUE[instance_type].name.to_owned(),
            zone: ZONES[zone].to_owned(),
            capacity,
            count,
            resources: BTreeMap::new(),
            allocatable: BTreeMap::new(),
            labels: BTreeMap::from([rack]),
        }
    };
    Ec2Config {
        region: REGION.to_owned(),
        account: Account { image: "ami-standin".to_owned(), ..Account::default() },
        offerings: counts.into_iter().map(offering).collect(),
        pinned_prices: BTreeMap::new(),
        pricing_region: REGION.to_owned(),
        spot_advisor_url: format!("{url}/spot-advisor-data.json"),
        kubeconfigs: BTreeMap::new(),
        page_size: 1000,
        command_bytes: 32 << 10,
    }
}
