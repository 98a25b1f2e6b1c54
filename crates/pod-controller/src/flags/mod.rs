//! Flags of the pod controller (§8).
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals.

#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use bigfleet_in_cluster::flags::ClusterFlags;
use bigfleet_net::{
    flags::{DiagnosticFlags, LogFlags, MetricsFlags, path_parser},
    values::{above_zero, positive},
};
use clap::{ArgAction, Parser, builder::BoolishValueParser};

use crate::{
    class_defaults::{self, ClassDefaults},
    controller::{Options, Scope},
    desired::Settings,
    selector::NodeSelector,
    table::DaemonSetPods,
};

/// HTTP port of the pod controller.
pub const METRICS_PORT: u16 = 8080;

/// Keeps one CapacityRequest per pod, for the pod's whole life.
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-unschedulable-pod-controller", version)]
pub struct Flags {
    /// `--metrics-addr`.
    #[command(flatten)]
    pub metrics: MetricsFlags<METRICS_PORT>,

    /// YAML file of penalties by priority class: {class: {interruptionPenalty,
    /// reclamationPenalty}}, in dollars; empty for none
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub priority_class_defaults: PathBuf,

    /// Pods that are looked at in parallel
    #[arg(long, value_name = "N", default_value = "16", value_parser = above_zero)]
    pub max_concurrent_reconciles: usize,

    /// Between two looks at every pod, and at requests whose pod is gone
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive)]
    pub resync: Duration,

    /// Pods on nodes with these labels have no CapacityRequest; empty: all nodes are managed
    #[arg(long, value_name = "SELECTOR", default_value = "node-role.kubernetes.io/control-plane")]
    pub unmanaged_node_selector: NodeSelector,

    /// Whether pods of DaemonSets have a CapacityRequest
    #[arg(long, value_name = "MODE", value_enum, default_value_t = DaemonSetPods::Count)]
    pub daemonset_pods: DaemonSetPods,

    /// Ask for machines that reach the volumes a pod is bound to
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub volume_topology: bool,

    /// Ask for one of the resource `pods` per pod; only if all machines declare it
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub count_pods_resource: bool,

    /// `--kubeconfig`, `--qps`, `--burst`, `--leader-elect`.
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// `--log-…`.
    #[command(flatten)]
    pub log: LogFlags,

    /// `--debug-endpoints`, `--otlp-endpoint`.
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,
}

impl Flags {
    /// How the controller works; reads the file of defaults.
    pub fn options(&self) -> Result<Options, class_defaults::Error> {
        let file = &self.priority_class_defaults;
        let class_defaults = if file.as_os_str().is_empty() {
            ClassDefaults::default()
        } else {
            ClassDefaults::load(file)?
        };
        Ok(Options {
            max_concurrent_reconciles: self.max_concurrent_reconciles,
            resync: self.resync,
            settings: Settings {
                daemonset_pods: self.daemonset_pods,
                count_pods_resource: self.count_pods_resource,
                class_defaults,
            },
        })
    }

    /// Which parts of the cluster matter.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            unmanaged_nodes: self.unmanaged_node_selector.clone(),
            volume_topology: self.volume_topology,
            resync: self.resync,
        }
    }
}
