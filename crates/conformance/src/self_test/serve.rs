//! The targets of the self-test, served by this very program.

use std::{future, path::Path, process::ExitCode, time::Duration};

use bigfleet_net::{
    flags, grpc::GrpcServer, listen::ListenAddr, readiness::Readiness, shutdown::Shutdown,
    tls::Security,
};
use bigfleet_provider::{
    Adapter,
    fake::{Fake, FakeOptions, Seed},
};
use bigfleet_provider_kit::fault::{self, FaultFlags};
use clap::{Args, Parser, ValueEnum};

use crate::{Error, target::TargetCommand};

/// Flags of the hidden subcommand `serve`: those of the target.
#[derive(Debug, Clone, Args)]
pub struct ServeFlags {
    /// Which target
    what: What,
    /// Its flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Fault,
    Fake,
}

/// Flags of the fake as a target.
#[derive(Debug, Clone, Parser)]
struct FakeFlags {
    #[arg(long)]
    addr: ListenAddr,
    #[arg(long)]
    seed_count: usize,
    #[arg(long, value_enum)]
    kind: FakeKind,
}

/// How the fake behaves.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FakeKind {
    /// Every ack shows the target.
    Instant,
    /// Every transition waits for a completer.
    Staged,
    /// No slots, no Delete.
    BareMetal,
}

impl FakeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Staged => "staged",
            Self::BareMetal => "bare-metal",
        }
    }
}

/// How often the completer comes.
const COMPLETER: Duration = Duration::from_millis(30);

/// Serves a target until it is killed.
#[must_use]
pub fn serve(serve: &ServeFlags) -> ExitCode {
    let words = std::iter::once("serve").chain(serve.words.iter().map(String::as_str));
    match serve.what {
        What::Fault => match flags::try_parse_from::<FaultFlags>(words) {
            Ok(flags) => fault::main(&flags),
            Err(error) => error.exit(),
        },
        What::Fake => match flags::try_parse_from::<FakeFlags>(words) {
            Ok(flags) => serve_fake(&flags),
            Err(error) => error.exit(),
        },
    }
}

fn serve_fake(flags: &FakeFlags) -> ExitCode {
    let served = tokio::runtime::Runtime::new()
        .map_err(Error::Temporary)
        .and_then(|runtime| runtime.block_on(fake_on_the_wire(flags)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet-conformance serve: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn fake_on_the_wire(flags: &FakeFlags) -> Result<(), Error> {
    let count = flags.seed_count;
    let (options, seed) = match flags.kind {
        FakeKind::Instant => (
            FakeOptions::instant(),
            Seed { speculative: count, spot: count / 4, ..Seed::default() },
        ),
        FakeKind::Staged => (
            FakeOptions::default(),
            Seed { speculative: count, spot: count / 4, ..Seed::default() },
        ),
        FakeKind::BareMetal => (
            FakeOptions { support_delete: false, ..FakeOptions::default() },
            Seed { idle: count, ..Seed::default() },
        ),
    };
    let fake = Fake::new(options);
    fake.seed(&seed).map_err(|rejected| Error::Usage(rejected.to_string()))?;
    let readiness = Readiness::new("starting");
    readiness.set_ready();
    let server = GrpcServer::new(Security::Plaintext, readiness)
        .add_service(Adapter::new(fake.clone()).into_service());
    let listener = flags.addr.bind().await?;
    let completer = async {
        let mut ticks = tokio::time::interval(COMPLETER);
        loop {
            ticks.tick().await;
            fake.complete_all_staged();
        }
    };
    tokio::select! {
        served = server.serve(listener, Shutdown::on_signal()?) => Ok(served?),
        () = completer => future::pending().await,
    }
}

/// Room for maps that the usual caps refuse.
pub(super) const LARGE_METADATA: [&str; 2] =
    ["--max-metadata-keys=1024", "--max-metadata-bytes=4194304"];

fn command(program: &Path, fixed: &[&str], further: &[String]) -> TargetCommand {
    let words = std::iter::once(program.display().to_string())
        .chain(fixed.iter().map(|&word| word.to_owned()))
        .chain(further.iter().cloned());
    TargetCommand::of_words(words.collect())
}

/// The command that serves the fault target from this program.
pub(super) fn fault(program: &Path, further: &[String]) -> TargetCommand {
    let fixed = ["serve", "fault", "--addr={addr}", "--seed-count={seed}", "--log-level=warn"];
    command(program, &fixed, further)
}

/// The command that serves the fake behind the adapter.
pub(super) fn fake(program: &Path, kind: FakeKind) -> TargetCommand {
    let fixed = ["serve", "fake", "--addr={addr}", "--seed-count={seed}"];
    command(program, &fixed, &[format!("--kind={}", kind.name())])
}
