//! Documents in the store: writing one version of a memory with all that is derived from it, and taking it away.
//!
//! Everything here is deterministic and happens inside the one write transaction.

use std::collections::BTreeMap;

use prost::Message;
use recalld_proto::storage::v1 as storage;
use recalld_store::codec::header::Header;
use recalld_store::codec::postings::{self, FULL_BYTES, Posting};
use recalld_store::codec::rows::{self, ROWS_PER_BLOCK, RowFacts};
use recalld_store::codec::sealed;
use recalld_store::ids::{MemoryId, Micros, NamespaceId, Row};
use recalld_store::{Schema, StoreError, Table, Txn, WriteTxn, keys};
use recalld_vector::{ROW_HEADER, row_bytes, rows_per_block};

use crate::indexed::{self, TermCount};
use crate::{attributes, kinds};

/// Where documents are read.
#[derive(Clone, Copy)]
pub(crate) struct Documents<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) ns: NamespaceId,
    /// Of a vector in this store.
    pub(crate) dimensions: usize,
}

/// A document to write.
pub(crate) struct NewDocument<'a> {
    pub(crate) id: MemoryId,
    pub(crate) record: &'a storage::Record,
    pub(crate) content: &'a str,
    pub(crate) vectors: &'a [storage::Vector],
    pub(crate) words: &'a [u8],
    pub(crate) terms: &'a [Vec<TermCount>],
}

/// What a document adds to the counts of its namespace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    pub(crate) passages: u64,
    pub(crate) terms: u64,
    pub(crate) content_tokens: u64,
}

fn count(terms: &[TermCount]) -> u32 {
    terms.iter().map(|(_, frequency)| frequency).sum()
}

impl Documents<'_> {
    pub(crate) fn header(&self, txn: &Txn<'_>, doc: Row) -> Result<Option<Header>, StoreError> {
        let key = keys::numbered(self.ns, doc.0);
        let Some(value) = self.schema.headers.get(txn, &key)? else {
            return Ok(None);
        };
        let header = sealed::open(value).and_then(Header::decode);
        header
            .map(Some)
            .ok_or_else(|| self.schema.headers.damaged(&key))
    }

    pub(crate) fn record(&self, txn: &Txn<'_>, doc: Row) -> Result<storage::Record, StoreError> {
        let key = keys::numbered(self.ns, doc.0);
        let damaged = || self.schema.records.damaged(&key);
        let value = self.schema.records.get(txn, &key)?.ok_or_else(damaged)?;
        storage::Record::decode(sealed::open(value).ok_or_else(damaged)?).map_err(|_| damaged())
    }

    pub(crate) fn content<'t>(&self, txn: &'t Txn<'_>, doc: Row) -> Result<&'t str, StoreError> {
        let key = keys::numbered(self.ns, doc.0);
        let damaged = || self.schema.contents.damaged(&key);
        let value = self.schema.contents.get(txn, &key)?.ok_or_else(damaged)?;
        std::str::from_utf8(sealed::open(value).ok_or_else(damaged)?).map_err(|_| damaged())
    }

    /// The document that an entry of `keys`, `ids`, `versions` or `digests` points to.
    pub(crate) fn pointed(value: Option<&[u8]>) -> Option<Row> {
        value.and_then(keys::trailing_number).map(Row)
    }

    pub(crate) fn by_key(&self, txn: &Txn<'_>, key: &str) -> Result<Option<Row>, StoreError> {
        Ok(Self::pointed(
            self.schema
                .keys
                .get(txn, &keys::named(self.ns, key.as_bytes()))?,
        ))
    }

    pub(crate) fn by_id(&self, txn: &Txn<'_>, id: MemoryId) -> Result<Option<Row>, StoreError> {
        Ok(Self::pointed(
            self.schema.ids.get(txn, &keys::id(self.ns, id))?,
        ))
    }

    pub(crate) fn by_digest(
        &self,
        txn: &Txn<'_>,
        digest: &[u8],
    ) -> Result<Option<Row>, StoreError> {
        Ok(Self::pointed(
            self.schema
                .digests
                .get(txn, &keys::named(self.ns, digest))?,
        ))
    }

    pub(crate) fn by_version(
        &self,
        txn: &Txn<'_>,
        id: MemoryId,
        version: u32,
    ) -> Result<Option<Row>, StoreError> {
        Ok(Self::pointed(
            self.schema
                .versions
                .get(txn, &keys::version(self.ns, id, version))?,
        ))
    }

    /// Documents of every kept version of a memory, oldest first.
    pub(crate) fn versions(
        &self,
        txn: &Txn<'_>,
        id: MemoryId,
    ) -> Result<Vec<(u32, Row)>, StoreError> {
        let mut versions = Vec::new();
        for entry in self.schema.versions.prefix(txn, &keys::id(self.ns, id))? {
            let (key, value) = entry?;
            let version =
                keys::trailing_number(key).ok_or_else(|| self.schema.versions.damaged(key))?;
            versions.push((
                version,
                Self::pointed(Some(value)).ok_or_else(|| self.schema.versions.damaged(key))?,
            ));
        }
        Ok(versions)
    }

    /// Writes a document at `doc`, the namespace's next row, as the current version of its memory.
    pub(crate) fn insert(
        &self,
        txn: &mut WriteTxn<'_>,
        doc: Row,
        new: &NewDocument<'_>,
    ) -> Result<Weight, StoreError> {
        let NewDocument {
            id,
            record,
            content,
            vectors,
            words,
            terms,
        } = new;
        let (schema, ns) = (self.schema, self.ns);
        let numbered = keys::numbered(ns, doc.0);
        let expires_at = record.expires_at_micros.map_or(Micros::NEVER, Micros);
        let header = Header {
            id: *id,
            version: record.version as u32,
            passages: record.passages.len() as u32,
            content_tokens: record.tokens_o200k,
            kind: kinds::number(&record.kind),
            importance: record.importance,
            confidence: record.confidence,
            occurred_at: Micros(record.occurred_at_micros),
            updated_at: Micros(record.updated_at_micros),
            expires_at,
            statement: indexed::statement(record, content),
        };
        let pointer = doc.0.to_be_bytes();
        schema
            .headers
            .put(txn, &numbered, &sealed::seal(&header.encode()))?;
        schema
            .records
            .put(txn, &numbered, &sealed::seal(&record.encode_to_vec()))?;
        schema
            .contents
            .put(txn, &numbered, &sealed::seal(content.as_bytes()))?;
        schema.ids.put(txn, &keys::id(ns, *id), &pointer)?;
        schema
            .versions
            .put(txn, &keys::version(ns, *id, header.version), &pointer)?;
        if !record.key.is_empty() {
            schema
                .keys
                .put(txn, &keys::named(ns, record.key.as_bytes()), &pointer)?;
        }
        if !record.digest.is_empty() {
            schema
                .digests
                .put(txn, &keys::named(ns, &record.digest), &pointer)?;
        }
        if expires_at != Micros::NEVER {
            schema
                .expiry
                .put(txn, &keys::expiry(ns, expires_at, doc), &[])?;
        }
        attributes::update(txn, schema, ns, doc, record, true)?;
        let length: u32 = terms.iter().map(|terms| count(terms)).sum();
        self.edit_facts(txn, doc, terms.len(), length, true)?;
        self.edit_vectors(txn, doc, terms.len(), vectors)?;
        schema.words.put(txn, &numbered, words)?;
        let mut by_term: BTreeMap<&str, Vec<Posting>> = BTreeMap::new();
        for (row, terms) in (doc.0..).zip(*terms) {
            for (term, frequency) in terms {
                let posting = Posting {
                    row,
                    frequency: *frequency,
                };
                by_term.entry(term).or_default().push(posting);
            }
        }
        for (term, postings) in by_term {
            self.add_postings(txn, term, &postings)?;
        }
        Ok(Weight {
            passages: terms.len() as u64,
            terms: u64::from(length),
            content_tokens: u64::from(record.tokens_o200k),
        })
    }

    /// Takes a live document out of everything that searches read. Its header, record and content stay.
    pub(crate) fn retire(&self, txn: &mut WriteTxn<'_>, doc: Row) -> Result<Weight, StoreError> {
        let (schema, ns) = (self.schema, self.ns);
        let record = self.record(txn, doc)?;
        let terms = indexed::terms(&record, self.content(txn, doc)?);
        if let Some(at) = record.expires_at_micros {
            schema
                .expiry
                .delete(txn, &keys::expiry(ns, Micros(at), doc))?;
        }
        // What was written again after it had expired has the digest now.
        if !record.digest.is_empty() && self.by_digest(txn, &record.digest)? == Some(doc) {
            schema
                .digests
                .delete(txn, &keys::named(ns, &record.digest))?;
        }
        attributes::update(txn, schema, ns, doc, &record, false)?;
        self.edit_facts(txn, doc, terms.len(), 0, false)?;
        self.edit_vectors(txn, doc, terms.len(), &[])?;
        schema.words.delete(txn, &keys::numbered(ns, doc.0))?;
        for (row, terms) in (doc.0..).zip(&terms) {
            for (term, _) in terms {
                self.remove_posting(txn, term, Row(row))?;
            }
        }
        Ok(Weight {
            passages: terms.len() as u64,
            terms: terms.iter().map(|terms| u64::from(count(terms))).sum(),
            content_tokens: u64::from(record.tokens_o200k),
        })
    }

    /// Removes a memory with all its versions. Answers what its live version weighed, and how many versions went.
    pub(crate) fn remove(
        &self,
        txn: &mut WriteTxn<'_>,
        id: MemoryId,
    ) -> Result<(Weight, u64), StoreError> {
        let (schema, ns) = (self.schema, self.ns);
        let versions = self.versions(txn, id)?;
        let Some(&(_, current)) = versions.last() else {
            return Ok((Weight::default(), 0));
        };
        let key = self.record(txn, current)?.key;
        let weight = self.retire(txn, current)?;
        for (version, doc) in &versions {
            let numbered = keys::numbered(ns, doc.0);
            for table in [&schema.headers, &schema.records, &schema.contents] {
                table.delete(txn, &numbered)?;
            }
            schema
                .versions
                .delete(txn, &keys::version(ns, id, *version))?;
        }
        schema.ids.delete(txn, &keys::id(ns, id))?;
        if !key.is_empty() {
            schema.keys.delete(txn, &keys::named(ns, key.as_bytes()))?;
        }
        Ok((weight, versions.len() as u64))
    }

    /// Sets the facts of a document's rows.
    fn edit_facts(
        &self,
        txn: &mut WriteTxn<'_>,
        doc: Row,
        passages: usize,
        terms: u32,
        alive: bool,
    ) -> Result<(), StoreError> {
        let per_block = ROWS_PER_BLOCK as u32;
        self.edit_blocks(
            txn,
            &self.schema.rows,
            (doc, passages),
            per_block,
            |block, place, index| {
                let facts = RowFacts {
                    terms,
                    offset: index as u32,
                    alive,
                };
                rows::set(block, place, facts);
            },
        )
    }

    /// Sets the vectors of a document's rows; those that are not given become none.
    fn edit_vectors(
        &self,
        txn: &mut WriteTxn<'_>,
        doc: Row,
        passages: usize,
        vectors: &[storage::Vector],
    ) -> Result<(), StoreError> {
        let size = row_bytes(self.dimensions);
        let per_block = rows_per_block(self.dimensions) as u32;
        self.edit_blocks(
            txn,
            &self.schema.vectors,
            (doc, passages),
            per_block,
            |block, place, index| {
                let (start, end) = (place * size, (place + 1) * size);
                if block.len() < end {
                    block.resize(end, 0);
                }
                let target = &mut block[start..end];
                match vectors.get(index) {
                    Some(vector) if vector.values.len() == self.dimensions => {
                        target[..ROW_HEADER].copy_from_slice(&vector.scale.to_le_bytes());
                        target[ROW_HEADER..].copy_from_slice(&vector.values);
                    }
                    _ => target.fill(0),
                }
            },
        )
    }

    /// Changes a document's rows in a table of blocks, each block read and written once. `edit` gets the block, the
    /// row's place in it, and its number in the document.
    fn edit_blocks(
        &self,
        txn: &mut WriteTxn<'_>,
        table: &Table,
        (doc, passages): (Row, usize),
        per_block: u32,
        mut edit: impl FnMut(&mut Vec<u8>, usize, usize),
    ) -> Result<(), StoreError> {
        let mut rows = (doc.0..).zip(0..passages).peekable();
        while let Some(&(first, _)) = rows.peek() {
            let number = first / per_block;
            let key = keys::numbered(self.ns, number);
            let mut block = table.get(txn, &key)?.unwrap_or_default().to_vec();
            while let Some((row, index)) = rows.next_if(|(row, _)| row / per_block == number) {
                edit(&mut block, (row % per_block) as usize, index);
            }
            table.put(txn, &key, &block)?;
        }
        Ok(())
    }

    /// Block and index in it of a row's vector.
    pub(crate) fn vector_place(&self, row: Row) -> (u32, usize) {
        let size = rows_per_block(self.dimensions) as u32;
        (row.0 / size, (row.0 % size) as usize)
    }

    /// The bytes of a row's vector.
    pub(crate) fn vector<'t>(
        &self,
        txn: &'t Txn<'_>,
        row: Row,
    ) -> Result<Option<&'t [u8]>, StoreError> {
        let (block, index) = self.vector_place(row);
        let size = row_bytes(self.dimensions);
        let bytes = self
            .schema
            .vectors
            .get(txn, &keys::numbered(self.ns, block))?;
        Ok(bytes.and_then(|bytes| bytes.get(index * size..(index + 1) * size)))
    }

    /// The words of a live document's passages; see `codec::words`.
    pub(crate) fn words<'t>(&self, txn: &'t Txn<'_>, doc: Row) -> Result<&'t [u8], StoreError> {
        let key = keys::numbered(self.ns, doc.0);
        let words = self.schema.words.get(txn, &key)?;
        words.ok_or_else(|| self.schema.words.damaged(&key))
    }

    /// The block of a term that holds, or would hold, a row.
    fn posting_block<'t>(
        &self,
        txn: &'t Txn<'_>,
        term: &str,
        row: Row,
    ) -> Result<Option<(Row, &'t [u8])>, StoreError> {
        let Some((key, block)) = self
            .schema
            .postings
            .at_or_before(txn, &keys::postings(self.ns, term, row))?
        else {
            return Ok(None);
        };
        let prefix = keys::term(self.ns, term);
        let first = key
            .strip_prefix(&prefix[..])
            .filter(|rest| rest.len() == 4)
            .and_then(keys::trailing_number);
        Ok(first.map(|first| (Row(first), block)))
    }

    /// Adds postings whose rows are in order and after all others of the term.
    fn add_postings(
        &self,
        txn: &mut WriteTxn<'_>,
        term: &str,
        added: &[Posting],
    ) -> Result<(), StoreError> {
        let Some(first) = added.first() else {
            return Ok(());
        };
        let mut open = self
            .posting_block(txn, term, Row(first.row))?
            .filter(|(_, block)| block.len() < FULL_BYTES)
            .map(|(first, block)| (first, block.to_vec()));
        for &posting in added {
            match &mut open {
                Some((first, block)) if block.len() < FULL_BYTES => {
                    postings::append(block, posting).ok_or_else(|| {
                        self.schema
                            .postings
                            .damaged(&keys::postings(self.ns, term, *first))
                    })?;
                }
                full => {
                    if let Some((first, block)) = full.take() {
                        self.put_postings(txn, term, first, &block)?;
                    }
                    *full = Some((Row(posting.row), postings::start(posting)));
                }
            }
        }
        match open {
            Some((first, block)) => self.put_postings(txn, term, first, &block),
            None => Ok(()),
        }
    }

    fn put_postings(
        &self,
        txn: &mut WriteTxn<'_>,
        term: &str,
        first: Row,
        block: &[u8],
    ) -> Result<(), StoreError> {
        self.schema
            .postings
            .put(txn, &keys::postings(self.ns, term, first), block)
    }

    fn remove_posting(
        &self,
        txn: &mut WriteTxn<'_>,
        term: &str,
        row: Row,
    ) -> Result<(), StoreError> {
        let Some((first, block)) = self.posting_block(txn, term, row)? else {
            return Ok(());
        };
        let key = keys::postings(self.ns, term, first);
        match postings::without(first.0, block, row.0)
            .ok_or_else(|| self.schema.postings.damaged(&key))?
        {
            Some(left) => self.schema.postings.put(txn, &key, &left),
            None => self.schema.postings.delete(txn, &key).map(|_| ()),
        }
    }
}
