//! The web dashboard (experience chapter §2–3): HTTP API, live stream and the app from `ui/`, in one
//! process without state. It only reads; nothing of BigFleet waits for it or knows it.
//!
//! ```no_run
//! use bigfleet_dashboard::{Config, Dashboard};
//! use bigfleet_net::shutdown::Shutdown;
//!
//! # async fn run() -> Result<(), bigfleet_dashboard::Error> {
//! let config = Config { coordinator: vec!["127.0.0.1:7790".to_owned()], ..Config::default() };
//! let dashboard = Dashboard::start(config).await?;
//! println!("http://{}", dashboard.addr());
//! dashboard.run(Shutdown::new()).await
//! # }
//! ```

mod api;
mod app;
mod assets;
mod auth;
mod base_path;
mod config;
mod dashboard;
mod error;
pub mod flags;
pub mod metrics;
pub mod process;
pub mod reader_role;
mod routes;
mod source;
mod stream;
mod view;

use self::app::App;
pub use self::{
    api::Source,
    assets::Assets,
    auth::{AuthConfig, Cidr, OidcConfig, ProxyConfig},
    base_path::BasePath,
    config::{Config, Holds},
    dashboard::Dashboard,
    error::Error,
    routes::{Route, TABLE as ROUTES},
    source::metrics::Target,
};
