//! Reads by id and key, and what a delete would do.

use recalld_store::StoreError;
use recalld_store::ids::{MemoryId, Row};

use crate::EngineError;
use crate::snapshot::Snapshot;
use crate::token::Token;
use crate::types::{Delete, Deleted, Detail, Details, Get};
use recalld_algo::summary::one_line;
use recalld_algo::tokens::Encoding;

impl Snapshot<'_> {
    /// The current, unexpired document of an id.
    pub(crate) fn live_by_id(&self, id: MemoryId) -> Result<Option<Row>, StoreError> {
        self.unexpired(self.docs.by_id(self.txn, id)?)
    }

    /// The current, unexpired document of a key.
    pub(crate) fn live_by_key(&self, key: &str) -> Result<Option<Row>, StoreError> {
        self.unexpired(self.docs.by_key(self.txn, key)?)
    }

    fn unexpired(&self, doc: Option<Row>) -> Result<Option<Row>, StoreError> {
        let Some(doc) = doc else { return Ok(None) };
        let header = self.docs.header(self.txn, doc)?;
        Ok(header
            .filter(|header| header.expires_at > self.now)
            .map(|_| doc))
    }

    /// The document of an older version of a memory that is itself live.
    fn at_version(&self, current: Row, version: Option<u64>) -> Result<Option<Row>, StoreError> {
        let Some(version) = version else {
            return Ok(Some(current));
        };
        let Some(header) = self.docs.header(self.txn, current)? else {
            return Ok(None);
        };
        match u32::try_from(version) {
            // A version that had an end of its own does not outlive it.
            Ok(version) => self.unexpired(self.docs.by_version(self.txn, header.id, version)?),
            Err(_) => Ok(None),
        }
    }

    fn detail(&self, doc: Row, get: &Get) -> Result<Detail, StoreError> {
        let numbered = recalld_store::keys::numbered(self.docs.ns, doc.0);
        let header = self
            .docs
            .header(self.txn, doc)?
            .ok_or_else(|| self.docs.schema.headers.damaged(&numbered))?;
        let mut record = self.docs.record(self.txn, doc)?;
        let full = self.docs.content(self.txn, doc)?;
        if record.summary.is_empty() {
            record.summary = one_line(full);
        }
        let content_tokens = match get.counter.encoding() {
            Some(Encoding::O200kBase) => record.tokens_o200k,
            Some(Encoding::Cl100kBase) => record.tokens_cl100k,
            None => get.counter.count(full),
        };
        let content = match get.max_tokens {
            Some(most) if content_tokens > most => get.counter.prefix(full, most),
            _ => full,
        };
        Ok(Detail {
            id: header.id,
            record,
            content: content.to_owned(),
            content_tokens,
            truncated: content.len() < full.len(),
        })
    }
}

pub(crate) fn details(
    snapshot: Option<&Snapshot<'_>>,
    get: &Get,
    token: Token,
) -> Result<Details, StoreError> {
    let mut details = Details {
        found: Vec::new(),
        missing_ids: Vec::new(),
        missing_keys: Vec::new(),
        token,
    };
    for &id in &get.ids {
        match find(snapshot, get.version, |snapshot| snapshot.live_by_id(id))? {
            Some((snapshot, doc)) => details.found.push(snapshot.detail(doc, get)?),
            None => details.missing_ids.push(id),
        }
    }
    for key in &get.keys {
        match find(snapshot, get.version, |snapshot| snapshot.live_by_key(key))? {
            Some((snapshot, doc)) => details.found.push(snapshot.detail(doc, get)?),
            None => details.missing_keys.push(key.clone()),
        }
    }
    Ok(details)
}

/// The wanted version of what `live` finds.
fn find<'s, 't>(
    snapshot: Option<&'s Snapshot<'t>>,
    version: Option<u64>,
    live: impl FnOnce(&Snapshot<'t>) -> Result<Option<Row>, StoreError>,
) -> Result<Option<(&'s Snapshot<'t>, Row)>, StoreError> {
    let Some(snapshot) = snapshot else {
        return Ok(None);
    };
    let Some(current) = live(snapshot)? else {
        return Ok(None);
    };
    Ok(snapshot
        .at_version(current, version)?
        .map(|doc| (snapshot, doc)))
}

/// Counts what a delete would do, without doing it.
pub(crate) fn would_delete(
    snapshot: Option<&Snapshot<'_>>,
    delete: &Delete,
    token: Token,
) -> Result<Deleted, EngineError> {
    let mut deleted = Deleted {
        deleted: 0,
        deleted_versions: 0,
        missing_ids: Vec::new(),
        missing_keys: Vec::new(),
        token,
    };
    let mut ids = Vec::new();
    let mut named = None;
    let Some(snapshot) = snapshot else {
        conflict(delete, None)?;
        deleted.missing_ids.clone_from(&delete.ids);
        deleted.missing_keys.clone_from(&delete.keys);
        return Ok(deleted);
    };
    let header = |doc: Row| snapshot.docs.header(snapshot.txn, doc);
    for &id in &delete.ids {
        match snapshot.live_by_id(id)? {
            Some(doc) => named = header(doc)?,
            None => deleted.missing_ids.push(id),
        }
        ids.extend(
            named
                .filter(|header| header.id == id)
                .map(|header| header.id),
        );
    }
    for key in &delete.keys {
        match snapshot.live_by_key(key)? {
            Some(doc) => {
                named = header(doc)?;
                ids.extend(named.map(|header| header.id));
            }
            None => deleted.missing_keys.push(key.clone()),
        }
    }
    conflict(delete, named.map(|header| u64::from(header.version)))?;
    if let Some(filter) = &delete.filter {
        ids.extend(snapshot.selected(filter)?);
    }
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        deleted.deleted += 1;
        deleted.deleted_versions += snapshot.docs.versions(snapshot.txn, id)?.len() as u64;
    }
    Ok(deleted)
}

fn conflict(delete: &Delete, current: Option<u64>) -> Result<(), EngineError> {
    let current = current.unwrap_or(0);
    match delete.if_version {
        Some(expected) if expected != current => Err(EngineError::VersionConflict {
            field: "if_version".to_owned(),
            current,
        }),
        _ => Ok(()),
    }
}
