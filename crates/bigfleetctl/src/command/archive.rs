//! What `snapshot save` writes.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::Error;

const BLOCK: usize = 512;

/// What `meta.json` says that a person is told.
#[derive(Debug, Deserialize)]
pub(super) struct Meta {
    #[serde(alias = "Index")]
    pub(super) index: u64,
    #[serde(alias = "Term")]
    pub(super) term: u64,
    #[serde(alias = "Size")]
    size: Option<u64>,
}

/// A tar of `meta.json` and `state`, under another name until it is complete. Dropped
/// before that, it leaves nothing.
pub(super) struct Archive {
    file: BufWriter<File>,
    spool: PathBuf,
    target: PathBuf,
    meta: Meta,
    /// Where the header of `state` is: its size is known at the end.
    header_at: u64,
    written: u64,
    complete: bool,
}

impl Archive {
    pub(super) fn create(target: &Path, meta: &[u8]) -> Result<Self, Error> {
        let unreadable = |error| {
            Error::Failed(format!("the coordinator's meta is not JSON of a snapshot: {error}"))
        };
        let parsed: Meta = serde_json::from_slice(meta).map_err(unreadable)?;
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let spool = target.with_file_name(name);
        // It holds the whole state of the fleet.
        let options = File::options().create(true).truncate(true).write(true).mode(0o600).clone();
        let file = options.open(&spool).map_err(Error::file(&spool))?;
        let mut archive = Self {
            file: BufWriter::new(file),
            spool,
            target: target.to_owned(),
            meta: parsed,
            header_at: 0,
            written: 0,
            complete: false,
        };
        let size = u64::try_from(meta.len()).unwrap_or(u64::MAX);
        let begun = archive.put(&header("meta.json", size)).and_then(|()| archive.put(meta));
        begun.and_then(|()| archive.pad(size)).map_err(Error::file(&archive.spool))?;
        archive.header_at = archive.file.stream_position().map_err(Error::file(&archive.spool))?;
        archive.put(&[0; BLOCK]).map_err(Error::file(&archive.spool))?;
        Ok(archive)
    }

    /// More of the state.
    pub(super) fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        self.written += u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.put(data).map_err(Error::file(&self.spool))
    }

    /// Closes the file and gives it its name.
    pub(super) fn finish(mut self) -> Result<Saved, Error> {
        let expected = self.meta.size.unwrap_or(self.written);
        if self.written == 0 || self.written != expected {
            return Err(Error::Failed(format!(
                "the snapshot ended after {} of {expected} bytes; nothing was saved",
                self.written
            )));
        }
        self.close().map_err(Error::file(&self.target))?;
        Ok(Saved { index: self.meta.index, term: self.meta.term })
    }

    fn close(&mut self) -> io::Result<()> {
        self.pad(self.written)?;
        // An archive ends with two empty blocks.
        self.put(&[0; 2 * BLOCK])?;
        self.file.seek(SeekFrom::Start(self.header_at))?;
        self.put(&header("state", self.written))?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.spool, &self.target)?;
        self.complete = true;
        let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        if over == 0 { Ok(()) } else { self.put(&[0; BLOCK][over..]) }
    }
}

/// What is saved.
pub(super) struct Saved {
    pub(super) index: u64,
    pub(super) term: u64,
}

impl Drop for Archive {
    fn drop(&mut self) {
        if !self.complete {
            let _ = fs::remove_file(&self.spool);
        }
    }
}

fn header(name: &str, size: u64) -> [u8; BLOCK] {
    let mut header = tar::Header::new_ustar();
    // The names are ours and short, so this cannot fail.
    let _ = header.set_path(name);
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    *header.as_bytes()
}
