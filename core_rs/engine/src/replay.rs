//! Applies a journal again, in an empty directory: the proof that the journal holds everything.

use std::path::Path;

use prost::Message;
use recalld_proto::storage::v1::{Operation, StoreIdentity};
use recalld_store::codec::journal;
use recalld_store::{OpenOptions, Store, StoreError};

use crate::apply::{self, Applier};
use crate::{EngineError, EngineOptions, open_store};

/// Operations of one transaction.
const BATCH: usize = 256;

/// Replays the journal of a closed data directory into `target`, which must be empty. Answers the store's identity,
/// which the new directory has as well.
pub fn replay(options: &EngineOptions, target: &Path) -> Result<StoreIdentity, EngineError> {
    let (source, model) = open_store(options)?;
    let identity = source.identity().clone();
    let open = OpenOptions {
        max_bytes: options.max_store_bytes,
        address: options.address.clone(),
        identity: identity.clone(),
    };
    let store = Store::open(target, &open)?;
    if apply::position(store.schema(), &*store.read()?)?.0 != 0 {
        let error = format!("{} is not empty", target.display());
        return Err(StoreError::Io {
            source: std::io::Error::new(std::io::ErrorKind::AlreadyExists, error),
        }
        .into());
    }
    let read = source.read()?;
    let table = &source.schema().journal;
    let mut entries = table.all(&read)?.peekable();
    while entries.peek().is_some() {
        let mut txn = store.write()?;
        let mut applier = Applier::new(store.schema(), model.dimensions(), &mut txn)?;
        for entry in entries.by_ref().take(BATCH) {
            let (key, value) = entry?;
            let damaged = || -> StoreError { table.damaged(key) };
            let operation = Operation::decode(&*journal::decode(value).ok_or_else(damaged)?)
                .map_err(|_| damaged())?;
            applier.apply(&operation, None)?;
        }
        applier.finish()?;
        store.commit(txn)?;
    }
    Ok(identity)
}
