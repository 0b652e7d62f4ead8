//! The store: LMDB through heed, and nothing else that touches the data file.
//!
//! `schema` states the whole data model on one page, `codec` holds one small file for each encoding, `table` is the
//! typed access with errors that name table and key. The store knows bytes and keys; what they mean for a memory is
//! the engine's business. It must never read a clock or a random source.

pub mod codec;
mod error;
pub mod ids;
pub mod keys;
mod lock;
pub mod schema;
mod table;

use std::path::{Path, PathBuf};

use heed::{CommitOrAbort, Env, EnvOpenOptions, WithoutTls};
use prost::Message;
use recalld_proto::storage::v1::StoreIdentity;

pub use error::StoreError;
pub use schema::{FORMAT_VERSION, Schema};
pub use table::{ReadTxn, Table, Txn, WriteTxn};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Most bytes the data file may take: the size of the memory map.
    pub max_bytes: u64,
    /// Where the process can be reached, for the error that a second process gets.
    pub address: String,
    /// What the directory must be; `store_id` is used only when it is made now.
    pub identity: StoreIdentity,
}

/// An open data directory. One process a directory.
pub struct Store {
    env: Env<WithoutTls>,
    schema: Schema,
    identity: StoreIdentity,
    max_bytes: u64,
    directory: PathBuf,
    _lock: lock::DirectoryLock,
}

impl Store {
    /// Opens the directory, or makes it when it is missing and its parent is there.
    pub fn open(directory: &Path, options: &OpenOptions) -> Result<Self, StoreError> {
        ensure_directory(directory)?;
        let lock = lock::DirectoryLock::take(directory, &options.address)?;
        let env = open_environment(directory, options.max_bytes)?;
        let txn = env.write_txn().map_err(StoreError::environment)?;
        let databases = env
            .create_databases_and_commit(txn, |opener, txn| -> Result<_, heed::Error> {
                let mut databases = Vec::with_capacity(schema::NAMES.len());
                for name in schema::NAMES {
                    databases.push(opener.create_database(txn, Some(name))?);
                }
                let databases: [_; schema::NAMES.len()] = databases
                    .try_into()
                    .map_err(|_| heed::Error::Mdb(heed::MdbError::DbsFull))?;
                Ok(CommitOrAbort::<_, ()>::Commit(databases))
            })
            .map_err(StoreError::environment)?
            .unwrap_commit();
        let schema = Schema::new(databases);
        let identity = establish_identity(&env, &schema, &options.identity)?;
        Ok(Self {
            env,
            schema,
            identity,
            max_bytes: options.max_bytes,
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    /// The tables.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What the directory is.
    pub fn identity(&self) -> &StoreIdentity {
        &self.identity
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A snapshot. Hold it for one call, never across a wait: while it lives the file cannot reuse pages.
    pub fn read(&self) -> Result<ReadTxn<'_>, StoreError> {
        self.env.read_txn().map_err(StoreError::environment)
    }

    /// The one write transaction. Commit makes it durable and visible at once; dropping it leaves no trace.
    pub fn write(&self) -> Result<WriteTxn<'_>, StoreError> {
        self.env.write_txn().map_err(StoreError::environment)
    }

    /// Makes a write transaction durable (synced) and visible.
    pub fn commit(&self, txn: WriteTxn<'_>) -> Result<(), StoreError> {
        txn.commit()
            .map_err(|error| match StoreError::environment(error) {
                StoreError::Io { source }
                    if source.raw_os_error() == Some(EIO) && self.is_out_of_room() =>
                {
                    StoreError::Full { what: "disk" }
                }
                error => error,
            })
    }

    /// LMDB says EIO when only a part of a write fits on the disk or under the process's file size limit. A device
    /// that is really at fault says the same, so the room is looked at.
    fn is_out_of_room(&self) -> bool {
        let little = |room: u64| room < LITTLE_ROOM;
        let on_disk = rustix::fs::statvfs(&self.directory)
            .is_ok_and(|disk| little(disk.f_bavail.saturating_mul(disk.f_frsize)));
        let length = fs_err::metadata(self.directory.join("data.mdb")).map_or(0, |file| file.len());
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        on_disk || limit.is_some_and(|limit| little(limit.saturating_sub(length)))
    }

    /// Whether only the room is left that deleting needs: a page that a delete changes is copied, and its old copy is
    /// free only after the commit, so a store without a free page could never be emptied.
    pub fn is_nearly_full(&self) -> Result<bool, StoreError> {
        let most = self.max_bytes - (self.max_bytes / 4).min(ROOM_TO_DELETE);
        if self.bytes_used() <= most {
            return Ok(false);
        }
        let txn = self.read()?;
        let mut used = 0;
        for table in self.schema.tables() {
            used += table.pages(&txn)? * PAGE_BYTES;
        }
        Ok(used > most)
    }

    /// Bytes of the data file in use, free pages inside it included.
    pub fn bytes_used(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * PAGE_BYTES
    }
}

/// Enough for the pages that deleting some memories changes.
const ROOM_TO_DELETE: u64 = 8 << 20;

/// LMDB takes the system's page size; recalld runs where that is 4 KiB.
const PAGE_BYTES: u64 = 4096;

const EIO: i32 = 5;

/// A transaction writes at most about twice as much.
const LITTLE_ROOM: u64 = 64 << 20;

/// More than the threads that a sidecar runs; a reader slot costs 64 bytes.
const MAX_READERS: u32 = 1024;

fn ensure_directory(directory: &Path) -> Result<(), StoreError> {
    if directory.is_dir() {
        return Ok(());
    }
    if directory.exists() {
        return Err(StoreError::NotADirectory {
            path: directory.to_owned(),
        });
    }
    let parent = match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => directory,
    };
    if !parent.is_dir() {
        return Err(StoreError::DirectoryMissing {
            path: parent.to_owned(),
        });
    }
    fs_err::create_dir(directory).map_err(StoreError::io)
}

#[expect(
    unsafe_code,
    reason = "heed marks opening a memory map unsafe; there is no safe way to open LMDB"
)]
fn open_environment(directory: &Path, max_bytes: u64) -> Result<Env<WithoutTls>, StoreError> {
    let size = max_bytes.next_multiple_of(PAGE_BYTES);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options
        .map_size(size as usize)
        .max_readers(MAX_READERS)
        .max_dbs(schema::NAMES.len() as u32);
    // SAFETY: the map is only sound while nobody else changes or truncates the file. The directory lock, taken
    // before, keeps other recalld processes out; the documentation tells people to leave the file alone and not to
    // put it on a network file system.
    unsafe { options.open(directory) }.map_err(StoreError::environment)
}

fn establish_identity(
    env: &Env<WithoutTls>,
    schema: &Schema,
    wanted: &StoreIdentity,
) -> Result<StoreIdentity, StoreError> {
    let mut txn = env.write_txn().map_err(StoreError::environment)?;
    let stored = match schema.meta.get(&txn, keys::META_IDENTITY)? {
        Some(bytes) => Some(
            StoreIdentity::decode(
                codec::sealed::open(bytes).ok_or_else(|| schema.meta.damaged(b"identity"))?,
            )
            .map_err(|_| schema.meta.damaged(b"identity"))?,
        ),
        None => None,
    };
    let Some(stored) = stored else {
        schema.meta.put(
            &mut txn,
            keys::META_IDENTITY,
            &codec::sealed::seal(&wanted.encode_to_vec()),
        )?;
        txn.commit().map_err(StoreError::environment)?;
        return Ok(wanted.clone());
    };
    if stored.format_version != wanted.format_version {
        return Err(StoreError::Format {
            found: stored.format_version,
            expected: wanted.format_version,
        });
    }
    if stored.analyzer_version != wanted.analyzer_version {
        return Err(StoreError::Analyzer {
            found: stored.analyzer_version,
            expected: wanted.analyzer_version,
        });
    }
    if stored.embedder_fingerprint != wanted.embedder_fingerprint
        || stored.dimensions != wanted.dimensions
    {
        return Err(StoreError::Embedder {
            found: Box::new(stored),
            given: Box::new(wanted.clone()),
        });
    }
    Ok(stored)
}
