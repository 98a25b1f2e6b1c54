//! Flags of `bigfleet-web-dashboard` (experience chapter §3.1).

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use bigfleet_net::{
    duration,
    flags::{DiagnosticFlags, LogFlags, TlsFlags, path_parser},
    identity::Identity,
    leader,
    listen::ListenAddr,
    rule::Rule,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use http::HeaderName;

use crate::{
    AuthConfig, BasePath, Cidr, Config, Error, Holds, OidcConfig, ProxyConfig, Target, config::PORT,
};

/// Shows a fleet in the browser; it reads, and changes nothing
#[derive(Debug, Parser)]
#[command(name = "bigfleet-web-dashboard", version)]
pub struct Flags {
    /// What to do instead of serving
    #[command(subcommand)]
    pub command: Option<Command>,

    /// HTTP address
    #[arg(long, value_name = "ADDR", default_value_t = ListenAddr::all_interfaces(PORT))]
    pub listen: ListenAddr,

    #[command(flatten)]
    sources: SourceFlags,

    /// Path under which it is reached, behind proxies that strip it and that do not
    #[arg(long, value_name = "PATH", default_value = "/")]
    base_path: BasePath,

    #[command(flatten)]
    holds: HoldFlags,

    #[command(flatten)]
    auth: AuthFlags,

    #[command(flatten)]
    tls: TlsFlags,

    /// Logging
    #[command(flatten)]
    pub log: LogFlags,

    /// Profiling and traces
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,
}

/// Subcommands.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Command {
    /// Print the role that a managed cluster must grant, for kubectl apply in each context
    ReaderRole,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sources")]
struct SourceFlags {
    /// URL of Prometheus; empty is off
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    prometheus_url: String,

    /// Without Prometheus: processes whose metrics are scraped here and kept for an hour, as
    /// ID=HOST:PORT,…
    #[arg(long, value_name = "TARGETS", default_value = "", hide_default_value = true)]
    scrape: String,

    /// host:port of the coordinator's replicas, separated by commas; empty is off
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    coordinator_addr: String,

    /// Kubeconfig with one context per managed cluster, named by its id; empty is off
    #[arg(long, value_name = "FILE", value_parser = path_parser())]
    kubeconfig: Option<PathBuf>,

    /// URL of Grafana, for its panels; empty is off
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    grafana_url: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Shards")]
struct HoldFlags {
    /// As the shards have it: how long an idle on-demand machine is kept; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    idle_hold_on_demand: Duration,

    /// As the shards have it: how long an idle spot machine is kept; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    idle_hold_spot: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Viewers")]
struct AuthFlags {
    /// How viewers are known
    #[arg(long, value_name = "MODE", default_value = "none")]
    auth: Mode,

    /// URL of the OpenID issuer
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    oidc_issuer: String,

    /// What the issuer calls this dashboard
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    oidc_client_id: String,

    /// File with the client's secret
    #[arg(long, value_name = "FILE", value_parser = path_parser())]
    oidc_client_secret_file: Option<PathBuf>,

    /// Groups whose members may look, separated by commas
    #[arg(long, value_name = "GROUPS", default_value = "", hide_default_value = true)]
    oidc_allowed_groups: String,

    /// Header in which a trusted proxy names the viewer
    #[arg(long, value_name = "HEADER", default_value = "", hide_default_value = true)]
    auth_header: String,

    /// Where that proxy comes from: 10.0.0.0/8,…
    #[arg(long, value_name = "CIDR", default_value = "", hide_default_value = true)]
    auth_trusted_cidr: String,

    /// OpenID claim that lists the clusters a viewer may see; empty is all of them
    #[arg(long, value_name = "CLAIM", default_value = "", hide_default_value = true)]
    cluster_scope_claim: String,
}

/// How viewers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Not at all: whoever reaches the address sees the fleet
    None,
    /// They sign in at an OpenID issuer
    Oidc,
    /// A proxy in front says who they are
    ProxyHeader,
}

impl Flags {
    /// What they come to; reads the files that they name.
    pub fn config(&self) -> Result<Config, Error> {
        let security = self.tls.load()?;
        security.check_own_identity(&Rule::exactly(Identity::Readonly))?;
        let sources = &self.sources;
        if !sources.prometheus_url.is_empty() && !sources.scrape.is_empty() {
            return Err(usage("--prometheus-url and --scrape: give one of them"));
        }
        Ok(Config {
            listen: self.listen.clone(),
            prometheus_url: url("--prometheus-url", &sources.prometheus_url)?,
            scrape: targets(&sources.scrape)?,
            coordinator: leader::split(&sources.coordinator_addr),
            kubeconfig: given(sources.kubeconfig.as_deref()).map(Path::to_owned),
            grafana_url: shown("--grafana-url", &sources.grafana_url)?,
            security,
            base_path: self.base_path.clone(),
            auth: self.auth.config()?,
            holds: Holds {
                on_demand: self.holds.idle_hold_on_demand,
                spot: self.holds.idle_hold_spot,
            },
            debug_endpoints: self.diagnostics.debug_endpoints,
        })
    }
}

fn usage(text: impl Into<String>) -> Error {
    Error::Usage(text.into())
}

/// What a flag lists, separated by commas.
fn list<T: FromStr<Err: Display>>(flag: &str, text: &str) -> Result<Vec<T>, Error> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let parse = |part: &str| part.parse().map_err(|error| usage(format!("{flag}: {error}")));
    parts.map(parse).collect()
}

/// Processes to scrape. Two of one name would be read as one that jumps back and forth.
fn targets(text: &str) -> Result<Vec<Target>, Error> {
    let targets: Vec<Target> = list("--scrape", text)?;
    let mut names = BTreeSet::new();
    match targets.iter().find(|target| !names.insert(&target.name)) {
        None => Ok(targets),
        Some(Target { name, .. }) => Err(usage(format!(
            "--scrape: two processes are called {name:?}; give each an ID of its own"
        ))),
    }
}

fn given(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn url(flag: &str, text: &str) -> Result<Option<String>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let uri = text.parse::<http::Uri>().ok();
    let web = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    match web {
        Some(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(Some(text.to_owned())),
        // It may hold a password.
        _ if text.contains('@') => {
            Err(usage(format!("{flag} is not a URL; write for example http://me:secret@host:9090")))
        }
        _ => {
            Err(usage(format!("{flag} {text:?} is not a URL; write for example http://host:9090")))
        }
    }
}

/// A URL that every viewer is told.
fn shown(flag: &str, text: &str) -> Result<Option<String>, Error> {
    let url = url(flag, text)?;
    let uri = url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
    let authority = uri.as_ref().and_then(http::Uri::authority);
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(usage(format!(
            "{flag}: every viewer would read its name and password; leave them out"
        )));
    }
    Ok(url)
}

impl AuthFlags {
    fn config(&self) -> Result<AuthConfig, Error> {
        let secret = given(self.oidc_client_secret_file.as_deref());
        let groups: Vec<String> = list("--oidc-allowed-groups", &self.oidc_allowed_groups)?;
        let trusted: Vec<Cidr> = list("--auth-trusted-cidr", &self.auth_trusted_cidr)?;
        let flags = [
            ("--oidc-issuer", Mode::Oidc, !self.oidc_issuer.is_empty()),
            ("--oidc-client-id", Mode::Oidc, !self.oidc_client_id.is_empty()),
            ("--oidc-client-secret-file", Mode::Oidc, secret.is_some()),
            ("--oidc-allowed-groups", Mode::Oidc, !groups.is_empty()),
            ("--auth-header", Mode::ProxyHeader, !self.auth_header.is_empty()),
            ("--auth-trusted-cidr", Mode::ProxyHeader, !trusted.is_empty()),
        ];
        let name = |mode: Mode| match mode {
            Mode::None => "none",
            Mode::Oidc => "oidc",
            Mode::ProxyHeader => "proxy-header",
        };
        let missing: Vec<&str> = flags
            .iter()
            .filter(|(_, mode, given)| *mode == self.auth && !given)
            .map(|(flag, ..)| *flag)
            .collect();
        if !missing.is_empty() {
            let (mode, missing) = (name(self.auth), missing.join(", "));
            return Err(usage(format!("--auth {mode} needs {missing}")));
        }
        // Whoever gives these believes that somebody checks.
        if let Some((flag, mode, _)) =
            flags.iter().find(|(_, mode, given)| *mode != self.auth && *given)
        {
            return Err(usage(format!("{flag} counts with --auth {} only", name(*mode))));
        }
        if !self.cluster_scope_claim.is_empty() && self.auth != Mode::Oidc {
            return Err(usage("--cluster-scope-claim counts with --auth oidc only"));
        }
        match self.auth {
            Mode::None => Ok(AuthConfig::None),
            Mode::Oidc => Ok(AuthConfig::Oidc(OidcConfig {
                issuer: self.oidc_issuer.clone(),
                client_id: self.oidc_client_id.clone(),
                client_secret: read_secret(secret.unwrap_or_else(|| Path::new("")))?,
                allowed_groups: groups,
                cluster_scope_claim: Some(self.cluster_scope_claim.clone())
                    .filter(|claim| !claim.is_empty()),
            })),
            Mode::ProxyHeader => {
                let header = self.auth_header.parse::<HeaderName>();
                let header = header.map_err(|_| {
                    usage(format!("--auth-header {:?} is no header's name", self.auth_header))
                })?;
                Ok(AuthConfig::ProxyHeader(ProxyConfig { header, trusted }))
            }
        }
    }
}

fn read_secret(path: &Path) -> Result<String, Error> {
    let refuse = |problem: String| Error::File {
        flag: "--oidc-client-secret-file",
        path: path.display().to_string(),
        problem,
    };
    let secret = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let secret = secret.trim_end_matches(['\r', '\n']);
    // It also seals the cookies.
    if secret.len() < 8 {
        return Err(refuse("a secret has at least 8 characters".to_owned()));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn config(args: &[&str]) -> Result<Config, String> {
        let args = ["x"].iter().chain(args);
        let flags = Flags::try_parse_from(args).map_err(|error| error.to_string())?;
        flags.config().map_err(|error| {
            assert!(error.is_usage() || matches!(error, Error::File { .. }), "{error}");
            error.to_string()
        })
    }

    #[test]
    fn empty_is_off() {
        let off = ["--prometheus-url=", "--coordinator-addr=", "--kubeconfig=", "--scrape="];
        let off = config(&off).unwrap();
        assert!(off.prometheus_url.is_none() && off.coordinator.is_empty());
        assert!(off.kubeconfig.is_none() && off.grafana_url.is_none());
        assert_eq!(
            (off.listen.to_string(), off.base_path.to_string()),
            (":8080".into(), "/".into())
        );
        assert!(matches!(off.auth, AuthConfig::None));
        // A shard's own, if nobody says otherwise.
        assert_eq!(off.holds, Holds::default());
        let held = config(&["--idle-hold-on-demand=2s", "--idle-hold-spot=0"]).unwrap().holds;
        assert_eq!((held.on_demand, held.spot), (Duration::from_secs(2), Duration::ZERO));
    }

    #[test]
    fn sources_are_read() {
        let on = config(&["--coordinator-addr=a:1, b:2", "--scrape=s=a:3,b:4"]).unwrap();
        assert_eq!(on.coordinator, ["a:1", "b:2"]);
        assert_eq!(on.scrape, [Target::new("s", "a:3"), Target::new("b:4", "b:4")]);
    }

    #[test]
    fn every_startup_error_names_its_flag() {
        let mut secret = tempfile::NamedTempFile::new().unwrap();
        writeln!(secret, "a long secret").unwrap();
        let file = format!("--oidc-client-secret-file={}", secret.path().display());
        let oidc = ["--auth=oidc", "--oidc-issuer=https://i", "--oidc-client-id=me", &file];
        for (args, named) in [
            (vec!["--tls-cert=a"], "--tls-key"),
            (vec!["--require-tls"], "--require-tls"),
            (vec!["--prometheus-url=host:9090"], "--prometheus-url"),
            (vec!["--prometheus-url=http://h", "--scrape=a:1"], "--scrape"),
            (vec!["--grafana-url=x"], "--grafana-url"),
            (vec!["--grafana-url=https://me:pass@h"], "--grafana-url: every viewer"),
            (vec!["--prometheus-url=me:pass@h"], "--prometheus-url is not a URL"),
            (vec!["--scrape=a"], "--scrape"),
            (vec!["--scrape=s=a:1,t=a:2,s=a:3"], "called \"s\""),
            (vec!["--base-path=x"], "--base-path"),
            (vec!["--auth=ldap"], "--auth"),
            (oidc.to_vec(), "--oidc-allowed-groups"),
            (vec!["--auth=oidc"], "--oidc-issuer, --oidc-client-id, --oidc-client-secret-file"),
            (vec!["--auth=proxy-header", "--auth-header=x"], "--auth-trusted-cidr"),
            (vec!["--auth=proxy-header", "--auth-trusted-cidr=::1"], "--auth-header"),
            (
                vec!["--auth=proxy-header", "--auth-header=a b", "--auth-trusted-cidr=::1"],
                "--auth-header",
            ),
            (vec!["--auth-trusted-cidr=x"], "--auth-trusted-cidr"),
            (vec!["--oidc-issuer=https://i"], "--auth oidc"),
            (vec!["--auth-header=x"], "--auth proxy-header"),
            (vec!["--cluster-scope-claim=c"], "--cluster-scope-claim"),
        ] {
            let problem = config(&args).expect_err(&format!("{args:?}"));
            assert!(problem.contains(named), "{args:?}: {problem}");
        }
        let good = [&oidc[..], &["--oidc-allowed-groups=sre", "--cluster-scope-claim=c"]].concat();
        let AuthConfig::Oidc(good) = config(&good).unwrap().auth else { panic!("oidc") };
        assert_eq!(good.client_secret, "a long secret");
        secret.as_file().set_len(3).unwrap();
        let short = config(&[&oidc[..], &["--oidc-allowed-groups=sre"]].concat()).unwrap_err();
        assert!(short.contains("--oidc-client-secret-file"), "{short}");
    }
}
