use std::path::PathBuf;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has it open.
    #[error("{}: another process has this state open; stop it or give another --state", .0.display())]
    Locked(PathBuf),

    /// Written by a version that this one does not know.
    #[error(
        "{}: state of version {found}, this program knows up to {known}; \
         use the program that wrote it, or a newer one", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
        /// What we know.
        known: u64,
    },

    /// Not what was written.
    #[error(
        "{}: corrupt state: {problem}; restore it from a backup, or move it away to begin \
         anew from what the cloud describes, which forgets bindings and fence marks",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it shows.
        problem: String,
    },

    /// The disk or the directory.
    #[error("{}: {problem}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },

    /// A store of another kind failed.
    #[error("{0}")]
    Other(String),
}
