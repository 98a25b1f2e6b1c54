//! Log lines on stderr, and traces by OTLP where asked for.

use std::{io, str::FromStr};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{
    Error,
    flags::{DiagnosticFlags, LogFlags, LogFormat},
};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Libraries whose debug lines drown ours; a directive of their own wins.
const NOISY: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

/// Libraries whose lines say less than ours about the same thing. The consensus library tells
/// every heartbeat at info and an orderly stop as an error; Kubernetes clients tell every attempt
/// as an error that does not reach the server, hundreds in an outage. What an operator must know
/// of them, those who call them say themselves.
const SILENT: [&str; 3] = ["openraft", "kube_client", "kube_runtime"];

/// `--log-level`: one level, or levels per module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevel(String);

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The filter library takes an unknown word for a module's name and
        // then logs nothing, so the words are checked here.
        let known = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        let legal = text.split(',').all(|directive| match directive.split_once('=') {
            Some((module, level)) => {
                !module.is_empty()
                    && module.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:-".contains(&b))
                    && known(level)
            }
            None => known(directive),
        });
        if !legal {
            return Err(format!(
                "{text:?} is not a log level; write off, error, warn, info, debug or trace"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl LogLevel {
    fn filter(&self) -> EnvFilter {
        let verbose =
            |level: &str| ["debug", "trace"].iter().any(|v| v.eq_ignore_ascii_case(level));
        let mut directives: Vec<String> = if self.0.split(',').any(verbose) {
            NOISY.iter().chain(&SILENT).map(|name| format!("{name}=info")).collect()
        } else {
            SILENT.iter().map(|name| format!("{name}=off")).collect()
        };
        // Of two directives for one module the later wins.
        directives.push(self.0.clone());
        EnvFilter::new(directives.join(","))
    }
}

/// The subscriber of these flags over any writer.
pub fn subscriber<W>(flags: &LogFlags, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    Registry::default().with(lines(flags, writer))
}

fn lines<W>(flags: &LogFlags, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let filter = flags.log_level.filter();
    match flags.log_format {
        LogFormat::Text => {
            fmt::layer().with_writer(writer).with_ansi(false).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_writer(writer).with_filter(filter).boxed()
        }
    }
}

/// Owns what must be flushed before the process ends.
#[derive(Debug)]
#[must_use = "traces are lost unless it is flushed"]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sets up logging, and tracing if asked for, for the whole process. To
    /// be called once, within the async runtime.
    pub fn init(
        service: &'static str,
        log: &LogFlags,
        diagnostics: &DiagnosticFlags,
    ) -> Result<Self, Error> {
        let provider = match diagnostics.otlp_endpoint.as_str() {
            "" => None,
            endpoint => Some(provider(service, endpoint)?),
        };
        let traces = provider.as_ref().map(|provider| {
            // The exporter's own calls must not become spans to export.
            let ours = filter_fn(|metadata| {
                metadata.target().starts_with("bigfleet") && *metadata.level() <= LevelFilter::INFO
            });
            tracing_opentelemetry::layer().with_tracer(provider.tracer(service)).with_filter(ours)
        });
        Registry::default()
            .with(lines(log, io::stderr))
            .with(traces)
            .try_init()
            .map_err(|error| Error::Telemetry(error.to_string()))?;
        Ok(Self { provider })
    }

    /// Sends what is left. Waits a few seconds for the collector at most.
    pub async fn flush(self) {
        let Some(provider) = self.provider else {
            return;
        };
        // Blocks until the exporter, which needs this runtime, has finished.
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        if let Ok(Err(error)) = flushed {
            tracing::warn!(%error, "traces were not flushed");
        }
    }
}

fn provider(service: &'static str, endpoint: &str) -> Result<SdkTracerProvider, Error> {
    if !endpoint.starts_with("http://") {
        return Err(Error::Telemetry(format!(
            "--otlp-endpoint {endpoint:?}: write it as http://host:4317; \
             TLS to a collector is not supported, use a local agent"
        )));
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| Error::Telemetry(format!("--otlp-endpoint {endpoint:?}: {error}")))?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name(service).build())
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked() {
        for good in [
            "off",
            "error",
            "warn",
            "info",
            "debug",
            "trace",
            "INFO",
            "info,bigfleet_net::tls=debug",
        ] {
            good.parse::<LogLevel>().unwrap();
        }
        for bad in
            ["", "verbose", "3", "info,", "info,verbose", "=info", "a b=info", "x=", "info;debug"]
        {
            assert!(bad.parse::<LogLevel>().unwrap_err().contains("write off, error"), "{bad}");
        }
    }
}
