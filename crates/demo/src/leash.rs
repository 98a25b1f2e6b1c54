//! Children that never outlive the demo, whatever ends it.
//!
//! A child holds the reading end of a pipe as its standard input, and the demo the only
//! writing end. When the demo ends, by a kill too, the system closes the pipe and the child
//! ends itself. One more child, the keeper, then removes the directory.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    process::exit,
    thread,
    time::Duration,
};

/// The hidden subcommand that children are started with.
pub const PART: &str = "demo-part";

/// Its first argument for the keeper.
pub const KEEP: &str = "keep";

/// How often the keeper tries: children that still end may still write.
const TRIES: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(50);

/// Ends this process as soon as the demo has ended.
///
/// # Errors
///
/// When there is no thread to wait on.
pub fn hold() -> io::Result<()> {
    thread::Builder::new().name("leash".to_owned()).spawn(|| {
        wait();
        exit(0);
    })?;
    Ok(())
}

/// The keeper: waits for the end of the demo and removes its directory.
///
/// # Errors
///
/// When the directory cannot be removed.
pub fn keep(directory: &Path) -> io::Result<()> {
    wait();
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        thread::sleep(BETWEEN);
    }
}

/// Until standard input closes.
fn wait() {
    let mut one = [0_u8; 64];
    let mut input = io::stdin().lock();
    loop {
        match input.read(&mut one) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}
