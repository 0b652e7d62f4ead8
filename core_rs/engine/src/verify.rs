//! Checks a whole data directory: every sealed value, and that what is derived agrees with what it is derived from.

use prost::Message;
use recalld_proto::storage::v1::{NamespaceState, Operation, Outcome, Record};
use recalld_store::codec::{docs, header::Header, journal, postings, sealed};
use recalld_store::ids::{Micros, NamespaceId, Row};
use recalld_store::{Schema, StoreError, Table, Txn, keys};

use crate::documents::Documents;
use crate::snapshot::Snapshot;
use crate::{EngineError, EngineOptions, indexed, open_store};

/// Something wrong with a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Table and key, or a namespace.
    pub location: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

const RESTORE: &str =
    "restore a copy of the data directory, or delete the memory and write it again";
const REBUILD: &str =
    "restore a copy of the data directory: this namespace's index is not to be trusted";

/// Reads everything in a directory that no process holds.
pub fn verify(options: &EngineOptions) -> Result<Vec<Problem>, EngineError> {
    if !options.data_dir.is_dir() {
        // Opening would make it.
        return Err(StoreError::DirectoryMissing {
            path: options.data_dir.clone(),
        }
        .into());
    }
    let (store, model) = open_store(options)?;
    let txn = store.read()?;
    let schema = store.schema();
    let mut problems = Vec::new();
    sealed_values(schema, &txn, &mut problems)?;
    let mut namespaces = Vec::new();
    for entry in schema.namespace_states.all(&txn)? {
        namespaces.extend(keys::trailing_number(entry?.0).map(NamespaceId));
    }
    for ns in namespaces {
        let checked = Snapshot::of(&txn, schema, ns, model.dimensions(), Micros(i64::MIN))
            .and_then(|snapshot| namespace(&snapshot, &mut problems));
        match checked {
            Ok(()) => {}
            Err(error @ StoreError::Damaged { .. }) => {
                let location = error.to_string();
                // A sealed value that is damaged is listed already.
                if problems.iter().all(|problem| problem.location != location) {
                    problems.push(Problem {
                        location,
                        what: "what is derived from it could not be checked".to_owned(),
                        fix: RESTORE.to_owned(),
                    });
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(problems)
}

/// Every value with a checksum opens and parses.
fn sealed_values(
    schema: &Schema,
    txn: &Txn<'_>,
    problems: &mut Vec<Problem>,
) -> Result<(), StoreError> {
    type Reads = fn(&[u8]) -> bool;
    let tables: [(&Table, Reads); 6] = [
        (&schema.journal, |value| {
            journal::decode(value).is_some_and(|operation| Operation::decode(&*operation).is_ok())
        }),
        (&schema.namespace_states, |value| {
            sealed::open(value).is_some_and(|state| NamespaceState::decode(state).is_ok())
        }),
        (&schema.outcomes, |value| {
            sealed::open(value).is_some_and(|outcome| Outcome::decode(outcome).is_ok())
        }),
        (&schema.headers, |value| {
            sealed::open(value).is_some_and(|header| Header::decode(header).is_some())
        }),
        (&schema.records, |value| {
            sealed::open(value).is_some_and(|record| Record::decode(record).is_ok())
        }),
        (&schema.contents, |value| {
            sealed::open(value).is_some_and(|content| std::str::from_utf8(content).is_ok())
        }),
    ];
    for (table, reads) in tables {
        for entry in table.all(txn)? {
            let (key, value) = entry?;
            if !reads(value) {
                problems.push(Problem {
                    location: table.damaged(key).to_string(),
                    what: "the value fails its checksum or does not parse".to_owned(),
                    fix: RESTORE.to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// What is derived agrees with the records.
fn namespace(snapshot: &Snapshot<'_>, problems: &mut Vec<Problem>) -> Result<(), StoreError> {
    let Snapshot {
        txn, docs, state, ..
    } = snapshot;
    let location = state.segments.join("/");
    let mut report = |what: String| {
        problems.push(Problem {
            location: location.clone(),
            what,
            fix: REBUILD.to_owned(),
        });
    };
    let facts = snapshot.facts()?;
    let (mut memories, mut passages, mut terms, mut tokens) = (0u64, 0u64, 0u64, 0u64);
    let live = snapshot.evaluator().every()?;
    let mut expected_postings = 0u64;
    for entry in docs.schema.ids.prefix(txn, &keys::namespace(docs.ns))? {
        let (key, value) = entry?;
        let doc = Documents::pointed(Some(value)).ok_or_else(|| docs.schema.ids.damaged(key))?;
        let record = docs.record(txn, doc)?;
        memories += 1;
        tokens += u64::from(record.tokens_o200k);
        if !live.contains(doc.0) {
            report(format!("document {} is not in the filter index", doc.0));
        }
        let by_passage = indexed::terms(&record, docs.content(txn, doc)?);
        let length: u32 = by_passage.iter().flatten().map(|(_, times)| times).sum();
        terms += u64::from(length);
        for (index, counts) in by_passage.iter().enumerate() {
            let row = doc.0 + index as u32;
            passages += 1;
            expected_postings += counts.len() as u64;
            let found = facts.get(row);
            if !found.alive || found.offset != index as u32 || found.terms != length {
                report(format!("row {row} does not agree with its record"));
            }
            if docs.vector(txn, Row(row))?.is_none() {
                report(format!("row {row} has no place for its vector"));
            }
        }
    }
    let mut found_postings = 0u64;
    for entry in docs
        .schema
        .postings
        .prefix(txn, &keys::namespace(docs.ns))?
    {
        let (key, block) = entry?;
        let first = keys::trailing_number(key).unwrap_or_default();
        let mut strays = 0;
        let whole = postings::for_each(first, block, |posting| {
            found_postings += 1;
            strays += u32::from(!facts.get(posting.row).alive);
        });
        if whole.is_none() || strays > 0 {
            report(format!(
                "{} names rows that are gone, or does not parse",
                docs.schema.postings.damaged(key)
            ));
        }
    }
    for entry in docs
        .schema
        .attributes
        .prefix(txn, &keys::namespace(docs.ns))?
    {
        let (key, chunk) = entry?;
        if docs::decode(chunk).is_none() {
            report(format!(
                "{} does not parse",
                docs.schema.attributes.damaged(key)
            ));
        }
    }
    for (name, expected, found) in [
        ("memories", memories, state.memories),
        ("passages", passages, state.passages),
        ("terms", terms, state.terms),
        ("tokens", tokens, state.content_tokens),
        ("documents in the filter index", memories, live.len()),
        ("postings", expected_postings, found_postings),
    ] {
        if expected != found {
            report(format!(
                "{name}: {expected} by the records, {found} counted"
            ));
        }
    }
    Ok(())
}
