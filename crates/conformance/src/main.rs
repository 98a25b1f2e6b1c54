//! The `bigfleet-conformance` binary.

use std::process::ExitCode;

use bigfleet_conformance::{
    Error,
    cli::{self, Cli, Command},
};
use bigfleet_net::flags;

fn main() -> ExitCode {
    let cli: Cli = flags::parse();
    // A served target has a runtime of its own.
    #[cfg(feature = "self-test")]
    if let Some(Command::Serve(flags)) = &cli.command {
        return bigfleet_conformance::self_test::serve(flags);
    }
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => match runtime.block_on(run(cli)) {
            Ok(code) => ExitCode::from(code),
            Err(error) => failed(&error),
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("bigfleet-conformance: {error}");
    ExitCode::from(2)
}

async fn run(cli: Cli) -> Result<u8, Error> {
    let flags = match cli.command {
        None => cli.run,
        Some(Command::Run(flags)) => *flags,
        Some(Command::List) => {
            print!("{}", cli::listing());
            return Ok(0);
        }
        #[cfg(feature = "self-test")]
        Some(Command::SelfTest(flags)) => {
            return bigfleet_conformance::self_test::run(&flags).await;
        }
        #[cfg(feature = "self-test")]
        Some(Command::Reference(flags)) => {
            return bigfleet_conformance::self_test::refer(&flags).await;
        }
        #[cfg(feature = "self-test")]
        Some(Command::Serve(_)) => return Ok(0),
    };
    Ok(cli::run(&flags).await?.verdict.exit_code())
}
