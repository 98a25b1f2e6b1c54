//! Flags that every long-running binary shares.
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals. A
//! flag on the command line wins.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Arg, ArgAction, Args, Command, CommandFactory, FromArgMatches, ValueEnum,
    builder::{BoolishValueParser, OsStringValueParser, TypedValueParser},
};

use crate::{
    Error,
    listen::{ListenAddr, MetricsAddr},
    telemetry::LogLevel,
    tls::Security,
};

/// Parses the process's arguments; a usage error ends it with exit code 2.
///
/// Use it instead of [`clap::Parser::parse`]: it ties every long flag, also
/// those of subcommands, to its environment variable.
#[must_use]
pub fn parse<T: CommandFactory + FromArgMatches>() -> T {
    try_parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// [`parse`] of given arguments, the first of which is the program's name.
pub fn try_parse_from<T: CommandFactory + FromArgMatches>(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, clap::Error> {
    let mut command = with_environment(T::command());
    let matches = command.try_get_matches_from_mut(args)?;
    T::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Ties every long flag that has none to its environment variable.
#[must_use]
pub fn with_environment(command: Command) -> Command {
    command.mut_args(with_variable).mut_subcommands(with_environment)
}

fn with_variable(arg: Arg) -> Arg {
    let informs = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    let Some(name) = arg.get_long().filter(|_| !informs && arg.get_env().is_none()) else {
        return arg;
    };
    let variable = format!("BIGFLEET_{}", name.to_uppercase().replace('-', "_"));
    let switch = matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse);
    let arg = arg.env(variable);
    // A variable has a value where a switch has none: 1 and 0 are as good as any.
    if switch { arg.value_parser(BoolishValueParser::new()) } else { arg }
}

/// For clap's `value_parser`: a path; empty means that none is given.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// `--tls-cert`, `--tls-key`, `--tls-ca`, `--require-tls`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsFlags {
    /// Certificate of this process in PEM, leaf first; serves and dials
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CERT", value_parser = path_parser())]
    pub tls_cert: Option<PathBuf>,

    /// Private key of --tls-cert in PEM
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_KEY", value_parser = path_parser())]
    pub tls_key: Option<PathBuf>,

    /// CA bundle in PEM that peers must chain to, as servers and as clients
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CA", value_parser = path_parser())]
    pub tls_ca: Option<PathBuf>,

    /// Refuse to start in plaintext
    #[arg(
        long,
        env = "BIGFLEET_REQUIRE_TLS",
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub require_tls: bool,
}

impl TlsFlags {
    /// Loads the material: all three flags are mTLS, none is plaintext.
    pub fn load(&self) -> Result<Security, Error> {
        Security::load(self)
    }
}

/// `--metrics-addr` with the binary's own port as default.
#[derive(Debug, Clone, Args)]
pub struct MetricsFlags<const PORT: u16> {
    /// HTTP address of /metrics, /healthz and /readyz; 0 disables
    #[arg(
        long,
        value_name = "ADDR",
        env = "BIGFLEET_METRICS_ADDR",
        default_value_t = MetricsAddr::Listen(ListenAddr::all_interfaces(PORT))
    )]
    pub metrics_addr: MetricsAddr,
}

/// `--log-level`, `--log-format`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Diagnostics")]
pub struct LogFlags {
    /// off, error, warn, info, debug or trace; also per module: info,bigfleet_shard=debug
    #[arg(long, value_name = "LEVEL", env = "BIGFLEET_LOG_LEVEL", default_value = "info")]
    pub log_level: LogLevel,

    /// Form of log lines on stderr
    #[arg(long, value_name = "FORMAT", env = "BIGFLEET_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// `--debug-endpoints`, `--otlp-endpoint`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Diagnostics")]
pub struct DiagnosticFlags {
    /// Serve profiling under /debug/ of the metrics port
    #[arg(
        long,
        env = "BIGFLEET_DEBUG_ENDPOINTS",
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub debug_endpoints: bool,

    /// Export traces by OTLP over gRPC, for example http://127.0.0.1:4317; empty exports none
    #[arg(long, value_name = "URL", env = "BIGFLEET_OTLP_ENDPOINT", default_value = "")]
    pub otlp_endpoint: String,
}
