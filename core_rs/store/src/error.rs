//! What can go wrong below the engine, and how each case must be treated.

use std::path::PathBuf;

use recalld_proto::storage::v1::StoreIdentity;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The parent of the data directory does not exist: a mistake in the configuration.
    #[error("the folder {} does not exist: create it, or give another data directory", path.display())]
    DirectoryMissing {
        /// The folder that is missing.
        path: PathBuf,
    },
    /// The data directory is something else: a mistake in the configuration.
    #[error("{} is not a directory: give another data directory", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// Another process holds the directory; it can serve the caller.
    #[error("{} is in use by process {pid}{}: stop that process or talk to it", path.display(), at(address))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as written in the lock file; "unknown" when it could not be read.
        pid: String,
        /// Where that process listens; empty when it does not.
        address: String,
    },
    /// The directory was written by another version of the format.
    #[error(
        "the data directory has format {found}, this version of recalld reads format {expected}: \
         open it with the version that wrote it"
    )]
    Format {
        /// In the directory.
        found: u32,
        /// Of this build.
        expected: u32,
    },
    /// The directory's terms were made by another version of the analysis.
    #[error(
        "the data directory was indexed by text analysis {found}, this version of recalld uses {expected}: \
         open it with the version that wrote it"
    )]
    Analyzer {
        /// In the directory.
        found: u32,
        /// Of this build.
        expected: u32,
    },
    /// The directory's vectors were made by another embedder; mixing them would give nonsense.
    #[error(
        "the data directory holds vectors of embedder {} ({} dimensions, fingerprint {}), but {} ({} dimensions, \
         fingerprint {}) is configured: configure the first one, or use another data directory",
        found.embedder, found.dimensions, short(&found.embedder_fingerprint),
        given.embedder, given.dimensions, short(&given.embedder_fingerprint)
    )]
    Embedder {
        /// In the directory.
        found: Box<StoreIdentity>,
        /// As configured.
        given: Box<StoreIdentity>,
    },
    /// The disk or the size limit is full: nothing of the transaction was kept, all before it is intact.
    #[error(
        "the store is full ({what}): free disk space or raise max_store_bytes; nothing of this write was kept"
    )]
    Full {
        /// What is full.
        what: &'static str,
    },
    /// A value failed its checksum or does not parse. Only what depends on it is affected.
    #[error("damaged record {record}: run `recalld doctor`")]
    Damaged {
        /// Table and key.
        record: String,
    },
    /// The data file itself is damaged or not a data file.
    #[error("the data file cannot be read ({source}): restore a backup")]
    Corrupted {
        /// LMDB's word for it.
        source: heed::Error,
    },
    /// The operating system refused; the error names the path.
    #[error("{source}")]
    Io {
        /// The cause.
        source: std::io::Error,
    },
    /// LMDB failed in a way that says nothing about the data.
    #[error("the store failed ({source})")]
    Lmdb {
        /// The cause.
        source: heed::Error,
    },
}

fn at(address: &str) -> String {
    if address.is_empty() {
        String::new()
    } else {
        format!(" at {address}")
    }
}

fn short(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}

impl StoreError {
    pub(crate) fn io(source: std::io::Error) -> Self {
        match source.raw_os_error() {
            Some(code) if is_disk_full(code) => Self::Full { what: "disk" },
            _ => Self::Io { source },
        }
    }

    pub(crate) fn environment(source: heed::Error) -> Self {
        use heed::MdbError;
        match source {
            heed::Error::Mdb(MdbError::MapFull) => Self::Full { what: "size limit" },
            heed::Error::Mdb(MdbError::Other(code)) if is_disk_full(code) => {
                Self::Full { what: "disk" }
            }
            heed::Error::Mdb(
                MdbError::Corrupted
                | MdbError::PageNotFound
                | MdbError::Invalid
                | MdbError::VersionMismatch,
            ) => Self::Corrupted { source },
            heed::Error::Io(source) => Self::io(source),
            source => Self::Lmdb { source },
        }
    }
}

/// ENOSPC, EFBIG (a file size limit) and EDQUOT.
fn is_disk_full(code: i32) -> bool {
    matches!(code, 28 | 27 | 122)
}
