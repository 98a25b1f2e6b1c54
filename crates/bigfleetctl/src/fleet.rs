//! One fleet, as flags, environment and configuration say: how to reach its
//! coordinator and its shards.

use std::time::Duration;

use bigfleet_net::{flags::TlsFlags, leader, tls::Security};

use crate::{
    Error,
    cli::Global,
    config::ConfigFile,
    console::Console,
    coordinator::{Coordinator, DEFAULT},
    known::KnownShards,
    output::Format,
};

/// What every command starts from.
#[derive(Debug)]
pub struct Fleet {
    /// The leader, wherever it is.
    pub coordinator: Coordinator,
    /// Where shards were.
    pub known: KnownShards,
    /// Who we are.
    pub security: Security,
    /// Of one call.
    pub timeout: Duration,
    /// How to print.
    pub format: Format,
    /// The configuration file.
    pub config: ConfigFile,
    /// The context in force.
    pub context: Option<String>,
    /// The certificate's files as they were given.
    pub tls: TlsFlags,
}

impl Fleet {
    /// Puts flags before the context, and the context before the defaults.
    pub fn new(global: &Global) -> Result<Self, Error> {
        let config = ConfigFile::load()?;
        Self::from(global, config)
    }

    fn from(global: &Global, config: ConfigFile) -> Result<Self, Error> {
        let named = config.context(global.context.as_deref())?;
        let (name, context) =
            named.map_or_else(Default::default, |(name, context)| (Some(name), context));
        let given = global.coordinator.as_deref().map(leader::split).filter(|all| !all.is_empty());
        // The cache goes with the context only while its coordinators are the context's.
        let fleet = match (&given, &name) {
            (None, Some(name)) => name.clone(),
            (given, _) => given.as_ref().map_or_else(|| DEFAULT.to_owned(), |all| all.join(",")),
        };
        let addresses = given.unwrap_or(context.coordinator);
        let addresses = if addresses.is_empty() { vec![DEFAULT.to_owned()] } else { addresses };
        let tls = tls(&global.tls, context.tls);
        let security = tls.load()?;
        Ok(Self {
            coordinator: Coordinator::new(addresses, security.clone(), global.timeout)?,
            known: KnownShards::of(config.folder(), &fleet),
            security,
            timeout: global.timeout,
            format: global.output.or(context.output).unwrap_or_default(),
            config,
            context: name,
            tls,
        })
    }

    /// Keeps the addresses of a list; that it cannot is said and no more.
    pub fn remember(
        &self,
        console: &mut Console,
        shards: &[bigfleet_wire::v1alpha1::ShardRegistryEntry],
    ) {
        if let Err(error) = self.known.keep(shards) {
            console
                .note(&format!("note: cannot keep the addresses of shards for the brake: {error}"));
        }
    }
}

/// A flag among the three means all three, so that no half set is filled up unseen.
fn tls(flags: &TlsFlags, context: Option<crate::config::TlsPaths>) -> TlsFlags {
    let given = |path: &Option<std::path::PathBuf>| {
        path.as_ref().is_some_and(|path| !path.as_os_str().is_empty())
    };
    match context {
        Some(paths)
            if !given(&flags.tls_cert) && !given(&flags.tls_key) && !given(&flags.tls_ca) =>
        {
            TlsFlags {
                tls_cert: Some(paths.cert),
                tls_key: Some(paths.key),
                tls_ca: Some(paths.ca),
                require_tls: flags.require_tls,
            }
        }
        _ => flags.clone(),
    }
}
