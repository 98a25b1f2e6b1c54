//! The `bigfleet` binary.

mod all_in_one;
mod bench;
mod coordinator;
mod decide;
mod demo;
mod error;
mod shard;

use std::process::ExitCode;

use bigfleet_net::flags;
use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: bigfleet_alloc::Counting<mimalloc::MiMalloc> =
    bigfleet_alloc::Counting(mimalloc::MiMalloc);

/// Turns the demand of many Kubernetes clusters into machines from many providers.
#[derive(Parser)]
#[command(name = "bigfleet", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a coordinator, a shard and a fake provider in one process, for a laptop.
    AllInOne(Box<all_in_one::AllInOneFlags>),
    /// Measure the parts on this machine: time, allocations, memory.
    Bench(Box<bench::Args>),
    /// Run a replica of the coordinator: who owns what, replicated.
    Coordinator(Box<bigfleet_coordinator::flags::CoordinatorFlags>),
    /// Decide one cycle from a file: what would the engine do?
    Decide(decide::Args),
    /// Run a whole fleet on this machine, to watch and to break.
    Demo(Box<bigfleet_demo::flags::DemoFlags>),
    /// A process of the demo, which ends with it.
    #[command(name = bigfleet_demo::leash::PART, hide = true)]
    DemoPart(demo::PartArgs),
    /// Run a shard: sessions in, decisions every cycle, machines out.
    Shard(Box<bigfleet_shard::flags::ShardFlags>),
}

fn main() -> ExitCode {
    run(flags::parse::<Cli>().command)
}

fn run(command: Command) -> ExitCode {
    let (name, result) = match command {
        Command::AllInOne(flags) => ("all-in-one", all_in_one::run(&flags)),
        Command::Bench(args) => ("bench", bench::run(&args)),
        Command::Coordinator(flags) => ("coordinator", coordinator::run(&flags)),
        Command::Decide(args) => ("decide", decide::run(&args)),
        Command::Demo(flags) => ("demo", demo::run(&flags)),
        Command::DemoPart(args) => return demo::part(&args),
        Command::Shard(flags) => ("shard", shard::run(&flags)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet {name}: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
