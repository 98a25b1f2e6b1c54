//! The one durable integer.

use std::{fs, io, path::Path};

use super::{Error, atomic};

/// Bits of a sequence number below the epoch (shard chapter §10, `seq`).
pub(crate) const SEQUENCE_BITS: u32 = 40;

/// The highest epoch: above it `epoch · 2^40 + n` no longer fits the wire's int64.
pub const MAX_EPOCH: i64 = i64::MAX >> SEQUENCE_BITS;

/// The next epoch, already written back.
pub(super) fn advance(path: &Path, floor: i64) -> Result<i64, Error> {
    advance_with(path, floor, atomic::write_atomically)
}

fn advance_with(
    path: &Path,
    floor: i64,
    write: impl FnOnce(&Path, &[u8]) -> io::Result<()>,
) -> Result<i64, Error> {
    let next = previous(path)?.map_or(1, |previous| previous.saturating_add(1)).max(floor);
    if next > MAX_EPOCH {
        return Err(Error::EpochTooHigh { path: path.to_owned(), epoch: next });
    }
    write(path, next.to_string().as_bytes()).map_err(|source| Error::Epoch {
        path: path.to_owned(),
        verb: "write",
        source,
    })?;
    Ok(next)
}

/// The epoch of the process before this one.
fn previous(path: &Path) -> Result<Option<i64>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::Epoch { path: path.to_owned(), verb: "read", source });
        }
    };
    parse(&bytes).map(Some).ok_or_else(|| Error::NotAnEpoch {
        path: path.to_owned(),
        text: String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned(),
    })
}

/// Digits; a person's editor may have added a newline.
fn parse(bytes: &[u8]) -> Option<i64> {
    let text = str::from_utf8(bytes.trim_ascii()).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::io::Error as IoError;

    use super::{
        super::atomic::{Step, temporary, write_atomically, write_stepwise},
        *,
    };

    /// A start that dies before this step of its write; all steps done, it lives.
    #[derive(Clone, Copy, Debug)]
    enum Start {
        Lives,
        DiesBefore(Step),
        /// Renamed, but the directory was not synced: the old name came back.
        RenameLost,
        /// The temporary file has only so many bytes of what was written.
        Torn(usize),
    }

    fn starts() -> Vec<Start> {
        let mut all = vec![Start::Lives, Start::RenameLost, Start::Torn(0), Start::Torn(1)];
        all.extend(Step::ALL.map(Start::DiesBefore));
        all
    }

    fn perform(path: &Path, start: Start) -> Option<i64> {
        let crash_at = |crash: Step| {
            move |path: &Path, bytes: &[u8]| {
                write_stepwise(path, bytes, |step| match step == crash {
                    true => Err(IoError::other("crash")),
                    false => Ok(()),
                })
            }
        };
        match start {
            Start::Lives => advance(path, 0).ok(),
            Start::DiesBefore(step) => advance_with(path, 0, crash_at(step)).ok(),
            Start::RenameLost => {
                let old = fs::read(path).ok();
                let used = advance_with(path, 0, crash_at(Step::SyncDirectory)).ok();
                match old {
                    Some(old) => fs::write(path, old).unwrap(),
                    None => fs::remove_file(path).unwrap(),
                }
                used
            }
            Start::Torn(kept) => {
                let used = advance_with(path, 0, crash_at(Step::Rename)).ok();
                let whole = fs::read(temporary(path)).unwrap();
                fs::write(temporary(path), &whole[..kept.min(whole.len())]).unwrap();
                used
            }
        }
    }

    /// Every pair of starts, each crashing anywhere or not at all, from a new
    /// volume and from one at the turn of a digit: the epochs that were used
    /// rise, and the start that follows works.
    #[test]
    fn shard_inv_02_epoch_strictly_rises_over_starts_and_crashes() {
        for old in [None, Some("9")] {
            for one in starts() {
                for two in starts() {
                    let dir = tempfile::tempdir().unwrap();
                    let path = dir.path().join("epoch");
                    if let Some(old) = old {
                        fs::write(&path, old).unwrap();
                    }
                    let mut last = old.map_or(0, |old| old.parse().unwrap());
                    for start in [one, two, Start::Lives] {
                        if let Some(used) = perform(&path, start) {
                            assert!(used > last, "{used} after {last}: {one:?} {two:?}");
                            last = used;
                        }
                    }
                    assert_eq!(parse(&fs::read(&path).unwrap()), Some(last));
                }
            }
        }
    }

    #[test]
    fn counts_from_one_and_takes_what_a_person_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        assert_eq!(advance(&path, 0).unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
        assert_eq!(advance(&path, 0).unwrap(), 2);
        fs::write(&path, " 41\n").unwrap();
        assert_eq!(advance(&path, 0).unwrap(), 42);
    }

    #[test]
    fn the_floor_lifts_and_never_lowers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        assert_eq!(advance(&path, 100).unwrap(), 100);
        assert_eq!(advance(&path, 100).unwrap(), 101);
        assert_eq!(advance(&path, 7).unwrap(), 102);
    }

    #[test]
    fn what_is_no_epoch_is_never_reset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        for text in ["", "abc", "-1", "+1", "1.5", "1 2", "99999999999999999999", "\u{fffd}"] {
            fs::write(&path, text).unwrap();
            let error = advance(&path, 0).unwrap_err();
            assert!(matches!(error, Error::NotAnEpoch { .. }), "{text:?}");
            assert!(error.to_string().contains("--epoch-floor"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "left as it was");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let unreadable = advance(&path, 0).unwrap_err().to_string();
        assert!(unreadable.contains("cannot read the epoch"), "{unreadable}");
    }

    #[test]
    fn unwritable_ends_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        fs::create_dir(temporary(&path)).unwrap();
        let unwritable = advance(&path, 0).unwrap_err().to_string();
        assert!(unwritable.contains("cannot write the epoch"), "{unwritable}");
    }

    #[test]
    fn stops_before_sequence_numbers_overflow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        assert_eq!(MAX_EPOCH, (1 << 23) - 1);
        write_atomically(&path, (MAX_EPOCH - 1).to_string().as_bytes()).unwrap();
        assert_eq!(advance(&path, 0).unwrap(), MAX_EPOCH);
        assert!(matches!(advance(&path, 0), Err(Error::EpochTooHigh { .. })));
        write_atomically(&path, i64::MAX.to_string().as_bytes()).unwrap();
        assert!(matches!(advance(&path, 0), Err(Error::EpochTooHigh { .. })));
    }
}
