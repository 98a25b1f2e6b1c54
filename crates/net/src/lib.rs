//! What every BigFleet process needs to be on the network: shared flags, TLS
//! with certificate identities, gRPC server and client defaults, the HTTP
//! server for metrics and probes, logging.
//!
//! A process is put together like this:
//!
//! ```no_run
//! use bigfleet_net::{
//!     flags::{self, DiagnosticFlags, LogFlags, MetricsFlags, TlsFlags},
//!     grpc::GrpcServer, http::HttpServer, identity::Identity, metrics, rule::Rule,
//!     readiness::Readiness, shutdown::Shutdown, telemetry::Telemetry, listen::ListenAddr,
//! };
//!
//! #[derive(clap::Parser)]
//! struct Flags {
//!     #[arg(long, default_value = ":7780")]
//!     listen: ListenAddr,
//!     #[command(flatten)]
//!     metrics: MetricsFlags<8780>,
//!     #[command(flatten)]
//!     tls: TlsFlags,
//!     #[command(flatten)]
//!     log: LogFlags,
//!     #[command(flatten)]
//!     diagnostics: DiagnosticFlags,
//! }
//!
//! # async fn run() -> Result<(), bigfleet_net::Error> {
//! let flags: Flags = flags::parse();
//! let telemetry = Telemetry::init("bigfleet-shard", &flags.log, &flags.diagnostics)?;
//! let shutdown = Shutdown::on_signal()?;
//! let security = flags.tls.load()?;
//! security.check_own_identity(&Rule::exactly(Identity::Shard("shard-0".into())))?;
//!
//! let readiness = Readiness::new("first reconcile has not finished");
//! let mut registry = prometheus_client::registry::Registry::default();
//! metrics::register(&mut registry, &security);
//! let http = HttpServer::new(registry, readiness.clone())
//!     .debug_endpoints(flags.diagnostics.debug_endpoints);
//! let grpc = GrpcServer::new(security.clone(), readiness.clone());
//!     // .add_service(message_limits!(ShardServer::new(shard)));
//! let listener = flags.listen.bind().await?;
//! tokio::try_join!(
//!     grpc.serve(listener, shutdown.clone()),
//!     http.serve_at(&flags.metrics.metrics_addr, shutdown.clone()),
//! )?;
//! telemetry.flush().await;
//! # Ok(()) }
//! ```

pub mod buckets;
pub mod duration;
mod error;
pub mod flags;
pub mod grpc;
pub mod http;
pub mod identity;
mod label;
pub mod leader;
pub mod listen;
pub mod metrics;
pub mod peer;
pub mod readiness;
pub mod rule;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod values;

pub use error::Error;
