//! `doctor`: looks for what is wrong; each fault names the fix.

mod clusters;
mod finding;
mod own;
mod providers;
mod quotas;
mod replicas;
pub(super) mod running;
mod shards;
mod skew;

use std::{collections::BTreeMap, path::PathBuf};

use self::finding::{Finding, Findings};
use crate::{
    Error,
    cli::Global,
    console::Console,
    fleet::Fleet,
    output::{self, Format},
};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kubeconfig with one context per cluster, to check the CRDs there
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Only these contexts of --kubeconfig
    #[arg(long, value_name = "CONTEXT", value_delimiter = ',', requires = "kubeconfig")]
    cluster: Vec<String>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// Where metrics are.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MetricsArgs {
    /// HTTP address of a shard or replica, if it is not its host at port 8780 or 8790
    #[arg(long, value_name = "ID=ADDR", value_delimiter = ',', value_parser = pair)]
    metrics: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (id, addr) = text.split_once('=').ok_or("write for example shard-0=10.0.0.1:8780")?;
    Ok((id.to_owned(), addr.to_owned()))
}

impl MetricsArgs {
    /// HTTP addresses by the id of their process.
    pub(super) fn addresses(&self) -> BTreeMap<&str, &str> {
        self.metrics.iter().map(|(id, addr)| (id.as_str(), addr.as_str())).collect()
    }
}

pub(super) async fn run(global: &Global, args: &Args, console: &mut Console) -> Result<(), Error> {
    let mut findings = Findings::default();
    let mut format = global.output.unwrap_or_default();
    match Fleet::new(global) {
        Err(error @ Error::Usage(_)) => return Err(error),
        Err(error) => own::unusable(&error, &mut findings),
        Ok(mut fleet) => {
            format = fleet.format;
            own::check(&fleet, &mut findings);
            let mut processes = replicas::check(&mut fleet, &mut findings).await;
            processes.extend(shards::check(&mut fleet, console, &mut findings).await);
            running::check(&fleet, &processes, &args.metrics, &mut findings).await;
            providers::check(&mut fleet, &mut findings).await;
            quotas::check(&mut fleet, &mut findings).await;
        }
    }
    clusters::check(args.kubeconfig.as_deref(), &args.cluster, global.timeout, &mut findings).await;
    let findings = findings.into_all();
    match format {
        Format::Table | Format::Wide => console.text(&screen(&findings))?,
        Format::Json | Format::Yaml => console.text(&output::document(format, &findings)?)?,
    }
    match findings.iter().filter(|finding| finding.is_fault()).count() {
        0 => Ok(()),
        1 => Err(Error::Failed("1 fault found".to_owned())),
        count => Err(Error::Failed(format!("{count} faults found"))),
    }
}

/// A line for each finding, and below it what to do.
fn screen(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let Finding { verdict, check, target, detail, fix } = finding;
        out += &format!("{:<7}  {check}  {target}: {detail}\n", verdict.word());
        if !fix.is_empty() {
            out += &format!("         fix: {fix}\n");
        }
    }
    out
}
