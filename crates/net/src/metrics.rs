//! Metrics that every process has.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{gauge::ConstGauge, info::Info},
    registry::{Metric, Registry, Unit},
};

use crate::tls::Security;

/// Registers `bigfleet_tls_enabled`, `bigfleet_tls_cert_expiry_timestamp_seconds`
/// and `bigfleet_build_info`. The registry must have no prefix.
pub fn register(registry: &mut Registry, security: &Security) {
    registry.register(
        "bigfleet_build",
        "Version of this process",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    registry.register_collector(Box::new(TlsCollector { security: security.clone() }));
}

/// Where a process puts its metrics under one prefix: a counter's name gets `_total`,
/// a size's `_bytes`, a time's `_seconds`.
#[derive(Debug)]
pub struct Names<'a>(&'a mut Registry);

impl<'a> Names<'a> {
    /// Names that begin with `prefix` and an underscore.
    pub fn new(registry: &'a mut Registry, prefix: &str) -> Self {
        Self(registry.sub_registry_with_prefix(prefix))
    }

    /// Of a number.
    pub fn plain(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.0.register(name, help, metric.clone());
    }

    /// Of a size.
    pub fn bytes(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.0.register_with_unit(name, help, Unit::Bytes, metric.clone());
    }

    /// Of a time.
    pub fn seconds(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
    }
}

/// Looks at the files at each scrape, so that a rotation shows although
/// nobody connects.
#[derive(Debug)]
struct TlsCollector {
    security: Security,
}

impl Collector for TlsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let tls = self.security.tls();
        gauge(
            &mut encoder,
            "bigfleet_tls_enabled",
            "Whether this process speaks mTLS (1) or plaintext (0)",
            i64::from(tls.is_some()),
        )?;
        let Some(tls) = tls else { return Ok(()) };
        gauge(
            &mut encoder,
            "bigfleet_tls_cert_expiry_timestamp_seconds",
            "When the certificate in use expires, in unix seconds",
            tls.leaf_expiry(),
        )
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: i64,
) -> Result<(), fmt::Error> {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}
