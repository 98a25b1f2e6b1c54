//! A shard process of our own.

use std::{
    env, fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child as Process, Command, Stdio},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::http;
use crate::{bench::memory, error::Error};

/// A large List over one connection takes its time.
const READY: Duration = Duration::from_secs(120);

/// It ends when this is dropped.
pub(super) struct Child {
    process: Process,
    data: PathBuf,
    pub(super) addr: String,
    pub(super) metrics: String,
}

impl Child {
    /// With its machines at a provider.
    pub(super) fn start(provider: &str, full_lists: bool) -> Result<Self, Error> {
        let data = env::temp_dir().join(format!("bigfleet-bench-{}", std::process::id()));
        fs::create_dir_all(&data)?;
        let (addr, metrics) = (free_addr()?, free_addr()?);
        let process = Command::new(env::current_exe()?)
            .args(["shard", "--id", "bench", "--listen", &addr, "--metrics-addr", &metrics])
            .args(["--provider-addr", provider, "--provider-list-page", "10000"])
            .arg(format!("--incremental-reconcile={}", !full_lists))
            // All clusters come at once, as they never do in life: the first demand is
            // to be met before anything counts.
            .args(["--execute-concurrency", "1024"])
            .args(["--log-level", "error", "--data-dir"])
            .arg(&data)
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { process, data, addr, metrics })
    }

    /// Resolves when it serves.
    pub(super) async fn ready(&self) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            match http::get(&self.metrics, "/readyz").await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > READY => return Err(error),
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Resident bytes, now and at most.
    pub(super) fn resident(&self) -> (u64, u64) {
        let process = self.process.id();
        (memory::resident_bytes_of(process), memory::peak_resident_bytes_of(process))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself; nobody needs what it leaves.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// An address that was free a moment ago.
fn free_addr() -> Result<String, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
