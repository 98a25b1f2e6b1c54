//! A value made from files, made again when they change.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use super::files::{self, Reading, Stamp};
use crate::Error;

/// Makes the value from paths and contents, in the order of the paths.
pub(super) type Build<T, const N: usize> = fn(&[PathBuf; N], &[Vec<u8>; N]) -> Result<T, Error>;

/// Holds the last good value. Files that cannot be read, are half-written or
/// do not belong together change nothing; the next use tries again.
pub(super) struct Reloading<T, const N: usize> {
    what: &'static str,
    paths: [PathBuf; N],
    build: Build<T, N>,
    current: ArcSwap<T>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// Stamps of the files behind the current value, if they can be trusted.
    settled: Option<Vec<Stamp>>,
    digest: u64,
    /// Last failure, so that it is logged once and not per handshake.
    failure: Option<String>,
}

impl<T, const N: usize> Reloading<T, N> {
    /// The first load: here every failure is final.
    pub(super) fn load(
        what: &'static str,
        paths: [PathBuf; N],
        build: Build<T, N>,
    ) -> Result<Self, Error> {
        let Reading { contents, digest, settled } = files::read(&paths, &files::stamps(&paths)?)?;
        let current = ArcSwap::from_pointee(build(&paths, &contents)?);
        let seen = Mutex::new(Seen { settled, digest, failure: None });
        Ok(Self { what, paths, build, current, seen })
    }

    /// The value as of now, or the last good one.
    pub(super) fn current(&self) -> Arc<T> {
        // A poisoned lock guards nothing that a panic could have torn.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match self.refresh(&mut seen) {
            Ok(()) => seen.failure = None,
            Err(error) => {
                let failure = error.to_string();
                if seen.failure.as_ref() != Some(&failure) {
                    tracing::warn!(
                        what = self.what,
                        error = failure,
                        "reload failed; the previous one stays in use"
                    );
                    seen.failure = Some(failure);
                }
            }
        }
        self.current.load_full()
    }

    fn refresh(&self, seen: &mut Seen) -> Result<(), Error> {
        let stamps = files::stamps(&self.paths)?;
        if seen.settled.as_ref() == Some(&stamps) {
            return Ok(());
        }
        let Reading { contents, digest, settled } = files::read(&self.paths, &stamps)?;
        if digest != seen.digest {
            let value = (self.build)(&self.paths, &contents)?;
            self.current.store(Arc::new(value));
            seen.digest = digest;
            tracing::info!(what = self.what, "reloaded");
        }
        seen.settled = settled;
        Ok(())
    }
}

/// Says nothing of the value: it may be a key.
impl<T, const N: usize> fmt::Debug for Reloading<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").field("paths", &self.paths).finish_non_exhaustive()
    }
}
