//! The `bigfleet-conformance` binary.

use std::process::ExitCode;

use bigfleet_conformance::{
    Error,
    cli::{self, Cli, Command, RunFlags},
};
use bigfleet_net::flags;

#[tokio::main]
async fn main() -> ExitCode {
    let cli: Cli = flags::parse();
    let ended = match cli.command {
        None => certify(&cli.run).await,
        Some(Command::Run(flags)) => certify(&flags).await,
        Some(Command::List) => {
            print!("{}", cli::listing());
            Ok(0)
        }
        #[cfg(feature = "self-test")]
        Some(Command::SelfTest(flags)) => bigfleet_conformance::self_test::run(&flags).await,
        #[cfg(feature = "self-test")]
        Some(Command::Serve(flags)) => bigfleet_conformance::self_test::serve(flags).await,
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("bigfleet-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

async fn certify(flags: &RunFlags) -> Result<u8, Error> {
    Ok(cli::run(flags).await?.verdict.exit_code())
}
