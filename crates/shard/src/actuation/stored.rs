//! The mode that was set, in the data directory.

use std::{borrow::Cow, fs, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, Mode};
use crate::{data_dir::write_atomically, json::instant};

/// What `SetActuation` last said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) mode: Mode,
    /// When this mode was first asked for.
    pub(super) since: Timestamp,
    pub(super) reason: String,
    pub(super) set_by: String,
}

/// Its form on disk.
#[derive(Serialize, Deserialize)]
struct Form<'a> {
    mode: Cow<'a, str>,
    #[serde(with = "instant")]
    since: Timestamp,
    reason: Cow<'a, str>,
    set_by: Cow<'a, str>,
}

impl Stored {
    /// Nobody ever said anything.
    pub(super) const fn never(now: Timestamp) -> Self {
        Self { mode: Mode::Active, since: now, reason: String::new(), set_by: String::new() }
    }

    /// What the file says; none if there is no file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let refused = |problem: String| Error::Stored { path: path.to_owned(), problem };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.to_string())),
        };
        let form: Form<'_> =
            serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
        let Some(mode) = Mode::ALL.iter().find(|mode| mode.label() == form.mode) else {
            return Err(refused(format!("unknown mode {:?}", form.mode)));
        };
        Ok(Some(Self {
            mode: *mode,
            since: form.since,
            reason: form.reason.into_owned(),
            set_by: form.set_by.into_owned(),
        }))
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let form = Form {
            mode: self.mode.label().into(),
            since: self.since,
            reason: self.reason.as_str().into(),
            set_by: self.set_by.as_str().into(),
        };
        let mut bytes = serde_json::to_vec(&form)?;
        bytes.push(b'\n');
        write_atomically(path, &bytes)
    }
}
