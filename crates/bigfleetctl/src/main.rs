//! The `bigfleetctl` binary.

use std::{
    io::{ErrorKind, Write as _, stderr},
    process::ExitCode,
};

use bigfleetctl::{Error, cli, console::Console, run};

fn main() -> ExitCode {
    let cli = cli::parse();
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| {
            let done = runtime.block_on(Box::pin(run(cli, &mut Console::real())));
            // A question that nobody answers must not hold up the end.
            runtime.shutdown_background();
            done
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Who has closed the pipe wants to read no more, not even this.
            let closed = matches!(&error, Error::Write(why) if why.kind() == ErrorKind::BrokenPipe);
            if !closed {
                let _ = writeln!(stderr(), "bigfleetctl: {error}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}
