//! The command line.

use std::{io::Write, path::PathBuf, time::Duration};

use bigfleet_net::duration;
use clap::{Parser, Subcommand};

use crate::{Error, cluster::Cluster, needs, nodes, wait, waiting, why};

/// Why a pod waits for a node, and what comes for it. Reads only.
#[derive(Debug, Parser)]
#[command(name = "kubectl-bigfleet", bin_name = "kubectl bigfleet", version)]
pub struct Cli {
    /// Path to the kubeconfig file [default: as kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace [default: the context's]; lists show all unless it is given
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,

    /// What to show.
    #[command(subcommand)]
    pub command: Command,
}

/// What to show.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Why a pod waits: its request, what the fleet says, the nodes coming for it, what to do
    Why {
        /// The pod, as NAME or NAMESPACE/NAME; without one, all pods that wait are listed
        pod: Option<String>,
    },
    /// Machines on their way and in the cluster, with their nodes and errors
    Nodes,
    /// Requests grouped as the operator rolls them up
    Needs,
    /// Wait until a pod runs, telling each turning point; exit 1 at the timeout, with the reason
    Wait {
        /// The pod, as NAME or NAMESPACE/NAME
        pod: String,
        /// How long
        #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
        timeout: Duration,
    },
}

/// Performs one command.
pub async fn run(cli: Cli, out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let cluster =
        Cluster::connect(cli.kubeconfig.as_deref(), cli.context, cli.namespace.as_deref()).await?;
    match cli.command {
        Command::Why { pod: None } => {
            let pods = cluster.waiting(cli.namespace.as_deref()).await?;
            out.write_all(waiting::screen(&pods).as_bytes())?;
        }
        Command::Why { pod: Some(pod) } => {
            let (namespace, pod) = parts(&pod);
            let picture = cluster.within(namespace).picture(pod).await?;
            out.write_all(why::screen(&picture).as_bytes())?;
        }
        Command::Nodes => out.write_all(nodes::screen(&cluster.machines().await?).as_bytes())?,
        Command::Needs => {
            let requests = cluster.requests(cli.namespace.as_deref()).await?;
            out.write_all(needs::screen(&requests).as_bytes())?;
        }
        Command::Wait { pod, timeout } => {
            let (namespace, pod) = parts(&pod);
            wait::until_running(&cluster.within(namespace), pod, timeout, out).await?;
        }
    }
    Ok(())
}

/// What people write for a pod: its name, after its namespace, or after its kind as kubectl
/// prints it.
fn parts(pod: &str) -> (Option<String>, &str) {
    match pod.split_once('/') {
        Some(("pod" | "pods", name)) => (None, name),
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, pod),
    }
}
