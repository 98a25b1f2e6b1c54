//! `support-bundle`: what a supporter needs, in one file, secrets removed.

mod redact;

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    time::SystemTime,
};

use futures_util::future::join_all;

use super::{
    decisions::DecisionRow,
    doctor::{
        MetricsArgs,
        running::{Kind, Process},
    },
    status,
};
use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    http, kept,
    known::Addresses,
    output::{self, Format},
    shards::Shard,
    when,
};

/// The end of a log is what matters.
const LOG_TAIL: usize = 16 << 20;

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file [default: bigfleet-support-TIME.tar]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Log files to put in; the last 16 MiB of each
    #[arg(long, value_name = "FILE", num_args = 1..)]
    log: Vec<PathBuf>,
    /// Decisions of each shard
    #[arg(long, value_name = "N", default_value_t = 1000)]
    decisions: usize,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// Files of the bundle, in order.
#[derive(Default)]
struct Contents(Vec<(String, String)>);

impl Contents {
    /// Nothing goes in but through here, so nothing goes in unread.
    fn add(&mut self, name: impl Into<String>, text: &str) {
        self.0.push((name.into(), redact::text(text)));
    }

    fn add_or_why(&mut self, name: &str, text: Result<String, String>) {
        match text {
            Ok(text) => self.add(name, &text),
            Err(problem) => self.add(format!("{name}.missing"), &format!("{problem}\n")),
        }
    }
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let mut contents = Contents::default();
    let (status, _) = status::collect(fleet, console).await;
    contents.add("status.txt", &status::screen(&status));
    contents.add("status.json", &output::document(Format::Json, &status)?);
    configuration(fleet, &mut contents);
    lists(fleet, &mut contents).await;
    let shards = fleet.known.read();
    metrics(fleet, args, &status, &shards, &mut contents).await;
    for (id, addr) in &shards {
        let name = format!("decisions/{id}.jsonl");
        contents.add_or_why(&name, tail(fleet, id, addr, args.decisions).await);
    }
    for path in &args.log {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = fs::read(path).map_err(|error| error.to_string());
        let tail = |bytes: Vec<u8>| {
            let from = bytes.len().saturating_sub(LOG_TAIL);
            String::from_utf8_lossy(&bytes[from..]).into_owned()
        };
        contents.add_or_why(&format!("logs/{name}"), read.map(tail));
    }
    let file = args.file.clone().unwrap_or_else(|| {
        let stamp: String =
            when::instant(when::now()).chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        PathBuf::from(format!("bigfleet-support-{stamp}.tar"))
    });
    let names: Vec<String> = contents.0.iter().map(|(name, _)| name.clone()).collect();
    write(&file, contents).map_err(Error::file(&file))?;
    for name in &names {
        console.note(&format!("  {name}"));
    }
    console.line(&format!(
        "wrote {} files to {}; look through it before you send it",
        names.len(),
        file.display()
    ))
}

/// Ours; what the processes run with is in their metrics and logs.
fn configuration(fleet: &Fleet, contents: &mut Contents) {
    let version = concat!("bigfleetctl ", env!("CARGO_PKG_VERSION"), "\n");
    contents.add("version.txt", version);
    let config = output::document(Format::Yaml, &fleet.config.config);
    contents.add_or_why("config.yaml", config.map_err(|error| error.to_string()));
    let identity = match fleet.security.tls() {
        None => "plaintext\n".to_owned(),
        Some(tls) => {
            let carried = tls.own_identity();
            let carried =
                carried.map_or_else(|none| none.to_string(), |identity| identity.to_string());
            let expires = when::instant(tls.leaf_expiry().saturating_mul(when::SECOND));
            format!("identity {carried}\nexpires {expires}\n")
        }
    };
    let coordinators = fleet.coordinator.addresses().join(",");
    contents.add("connection.txt", &format!("coordinator {coordinators}\n{identity}"));
}

async fn lists(fleet: &mut Fleet, contents: &mut Contents) {
    let domains = fleet.coordinator.domains().await.map_err(|error| error.to_string());
    let domain = |row: &bigfleet_wire::v1alpha1::DomainAssignment| {
        format!("{}={} {}\n", row.topology_key, row.topology_value, row.shard_id)
    };
    contents.add_or_why("domains.txt", domains.map(|rows| rows.iter().map(domain).collect()));
    let providers = fleet.coordinator.providers().await.map_err(|error| error.to_string());
    let provider = |row: &bigfleet_wire::v1alpha1::ProviderEntry| {
        format!("{} {} {}\n", row.name, row.address, row.region)
    };
    contents.add_or_why("providers.txt", providers.map(|rows| rows.iter().map(provider).collect()));
}

async fn metrics(
    fleet: &Fleet,
    args: &Args,
    status: &status::Status,
    shards: &Addresses,
    contents: &mut Contents,
) {
    let replicas = status.replicas.iter().filter(|replica| replica.error.is_none());
    let replicas = replicas.map(|replica| {
        let (id, addr) = (replica.node.clone(), replica.address.clone());
        (format!("metrics/replica-{id}.txt"), Process { id, addr, kind: Kind::Replica })
    });
    let shards = shards.iter().map(|(id, addr)| {
        let (id, addr) = (id.clone(), addr.clone());
        (format!("metrics/shard-{id}.txt"), Process { id, addr, kind: Kind::Shard })
    });
    let pages = replicas.chain(shards).map(|(name, process)| async move {
        let addr = process.metrics(&args.metrics);
        let page = http::get(&addr, "/metrics", fleet.timeout).await;
        (name, page.map_err(|problem| format!("{addr}: {problem}")))
    });
    for (name, page) in join_all(pages).await {
        contents.add_or_why(&name, page);
    }
}

/// The last decisions of a shard as JSON lines.
async fn tail(fleet: &Fleet, id: &str, addr: &str, most: usize) -> Result<String, String> {
    let read = async {
        let shard = Shard::dial(Some(id), addr, &fleet.security, fleet.timeout)?;
        kept::read(&shard, kept::OLDEST, Some(most), None).await
    };
    let kept = read.await.map_err(|error| error.to_string())?;
    let line = |record| {
        serde_json::to_string(&DecisionRow::from(record)).map_err(|error| error.to_string())
    };
    let lines = kept.records.into_iter().map(line).collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

fn write(path: &std::path::Path, contents: Contents) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
    let mut archive = tar::Builder::new(file);
    for (name, text) in contents.0 {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(text.len()).unwrap_or(u64::MAX));
        header.set_mode(0o600);
        header.set_mtime(now);
        archive.append_data(&mut header, format!("bigfleet-support/{name}"), text.as_bytes())?;
    }
    let mut file = archive.into_inner()?;
    file.flush()?;
    file.sync_all()
}
