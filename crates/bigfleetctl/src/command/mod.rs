//! The subcommands, a file per group.

mod archive;
pub mod brake;
pub mod bundle;
pub mod completion;
pub mod decisions;
pub mod doctor;
pub mod domains;
pub mod explain;
pub mod machines;
pub mod needs;
mod offline;
pub mod providers;
pub mod quotas;
pub mod raft;
pub mod reports;
pub mod sessions;
pub mod shards;
pub mod snapshot;
pub mod status;
pub mod top;
mod transfers;
pub mod whatif;

use crate::{
    Error,
    cli::{Cli, Command},
    console::Console,
    fleet::Fleet,
};

/// Performs one command.
pub async fn run(cli: Cli, console: &mut Console) -> Result<(), Error> {
    // These work without any configuration, be it a broken one.
    match &cli.command {
        Command::Completion(args) => return completion::run(args, console),
        Command::Version => {
            return console.line(concat!("bigfleetctl ", env!("CARGO_PKG_VERSION")));
        }
        Command::Snapshot(command) if command.is_offline() => {
            let format = cli.global.output.unwrap_or_default();
            return offline::run(command, format, console);
        }
        Command::Doctor(args) => return doctor::run(&cli.global, args, console).await,
        _ => {}
    }
    let fleet = &mut Fleet::new(&cli.global)?;
    match cli.command {
        Command::Status(args) => status::run(fleet, console, &args).await,
        Command::Top(args) => top::run(fleet, console, &args).await,
        Command::Needs(args) => needs::run(fleet, console, &args).await,
        Command::Explain(args) => explain::run(fleet, console, &args).await,
        Command::Machines(args) => machines::run(fleet, console, args).await,
        Command::Sessions(args) => sessions::run(fleet, console, args).await,
        Command::Decisions(args) => decisions::run(fleet, console, &args).await,
        Command::Whatif(args) => whatif::run(fleet, console, &args).await,
        Command::Pause(args) => brake::run(fleet, console, &args, brake::Mode::Paused).await,
        Command::Resume(args) => brake::run(fleet, console, &args, brake::Mode::Active).await,
        Command::Shadow(args) => brake::run(fleet, console, &args, brake::Mode::DryRun).await,
        Command::ListShards => shards::list(fleet, console).await,
        Command::ListDomainAssignments => domains::list(fleet, console).await,
        Command::ListQuotas => quotas::list(fleet, console).await,
        Command::ListProviders => providers::list(fleet, console).await,
        Command::ListTransfers => transfers::list(fleet, console).await,
        Command::ListReleasing => transfers::releasing(fleet, console).await,
        Command::ListShardReports(args) => reports::list(fleet, console, &args).await,
        Command::AssignDomain(args) => domains::assign(fleet, console, &args).await,
        Command::UnassignDomain(args) => domains::unassign(fleet, console, &args).await,
        Command::MoveDomain(args) => domains::r#move(fleet, console, &args).await,
        Command::MoveCluster(args) => domains::move_cluster(fleet, console, &args).await,
        Command::RemoveShard(args) => shards::remove(fleet, console, &args).await,
        Command::SetQuota(args) => quotas::set(fleet, console, &args).await,
        Command::UpsertProvider(args) => providers::upsert(fleet, console, &args).await,
        Command::RemoveProvider(args) => providers::remove(fleet, console, &args).await,
        Command::RaftStatus => raft::status(fleet, console).await,
        Command::RaftRemove(args) => raft::remove(fleet, console, &args).await,
        Command::Snapshot(command) => snapshot::run(fleet, console, &command).await,
        Command::ConfirmRestore(args) => snapshot::confirm(fleet, console, &args).await,
        Command::SupportBundle(args) => bundle::run(fleet, console, &args).await,
        Command::Completion(_) | Command::Version | Command::Doctor(_) => Ok(()),
    }
}
