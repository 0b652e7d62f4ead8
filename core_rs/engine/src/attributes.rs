//! The filter index: which values of a memory are indexed, how a value becomes bytes that sort like it, and how a
//! filter is answered from the index as a set of documents.
//!
//! One table serves all fields and all tests: equality is a lookup, ranges and prefixes are key ranges, presence is
//! the field's prefix. It knows nothing of the clock: expiry is checked by the caller.

use std::ops::Bound;

use recalld_proto::storage::v1::Record;
use recalld_proto::v1::Value;
use recalld_proto::v1::value::Kind as ValueKind;
use recalld_store::codec::docs;
use recalld_store::ids::{Micros, NamespaceId, Row};
use recalld_store::{Schema, StoreError, Txn, WriteTxn, keys};
use roaring::RoaringBitmap;

use crate::filter::{Field, Filter, Scalar, Test};
use crate::types::Selection;

/// The field under which every live document stands.
const EVERY: &str = "";

const BOOL: u8 = 1;
const NUMBER: u8 = 2;
const TEXT: u8 = 3;
const TIME: u8 = 4;
/// A list or a map, for `exists`: after all types that can be compared.
const CONTAINER: u8 = 5;

/// A value of a field, as it is indexed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attribute {
    field: String,
    value: Vec<u8>,
}

/// The name under which a field is indexed: built-in fields by their names, metadata by its path.
fn index_name(field: &Field) -> String {
    match field {
        Field::Metadata(path) => format!("metadata.{path}"),
        field => Field::NAMED
            .iter()
            .find(|(_, known)| known == field)
            .map_or(EVERY, |(name, _)| name)
            .to_owned(),
    }
}

fn text_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + text.len());
    bytes.push(TEXT);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn time_bytes(at: Micros) -> Vec<u8> {
    let mut bytes = vec![TIME];
    bytes.extend_from_slice(&keys::instant(at));
    bytes
}

/// Bytes of a double that sort like doubles; both zeros are one.
fn double_order(value: f64) -> [u8; 8] {
    let bits = (value + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    ordered.to_be_bytes()
}

/// The double that has these bytes.
fn read_double(bytes: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(bytes);
    f64::from_bits(if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    })
}

/// The greatest double at most `value`, and what is left: at most 1,023.
fn split_integer(value: i64) -> (f64, u16) {
    let near = value as f64;
    let near = if near as i128 > i128::from(value) {
        near.next_down()
    } else {
        near
    };
    (near, (i128::from(value) - near as i128) as u16)
}

/// Integers and doubles as one ordered type, exactly: the double below, then the distance from it.
fn number_bytes(double: f64, rest: u16) -> Vec<u8> {
    let mut bytes = vec![NUMBER];
    bytes.extend_from_slice(&double_order(double));
    bytes.extend_from_slice(&rest.to_be_bytes());
    bytes
}

fn integer_bytes(value: i64) -> Vec<u8> {
    let (double, rest) = split_integer(value);
    number_bytes(double, rest)
}

fn scalar_bytes(scalar: &Scalar) -> Vec<u8> {
    match scalar {
        Scalar::Bool(value) => vec![BOOL, u8::from(*value)],
        Scalar::Int(value) => integer_bytes(*value),
        Scalar::Double(value) => number_bytes(*value, 0),
        Scalar::Text(value) => text_bytes(value),
        Scalar::Time(value) => time_bytes(*value),
    }
}

/// Every attribute of a document, in order, without repeats.
pub(crate) fn of_record(record: &Record) -> Vec<Attribute> {
    let mut all = vec![Attribute {
        field: EVERY.to_owned(),
        value: Vec::new(),
    }];
    let mut add = |field: Field, value: Vec<u8>| {
        all.push(Attribute {
            field: index_name(&field),
            value,
        });
    };
    add(Field::Kind, text_bytes(&record.kind));
    for tag in &record.tags {
        add(Field::Tags, text_bytes(tag));
    }
    for (field, text) in [(Field::Key, &record.key), (Field::Origin, &record.origin)] {
        if !text.is_empty() {
            add(field, text_bytes(text));
        }
    }
    for source in &record.sources {
        for (field, text) in [
            (Field::SourceUri, &source.uri),
            (Field::SourceSession, &source.session),
            (Field::SourceSpeaker, &source.speaker),
        ] {
            if !text.is_empty() {
                add(field, text_bytes(text));
            }
        }
    }
    add(Field::Importance, number_bytes(record.importance, 0));
    add(Field::Confidence, number_bytes(record.confidence, 0));
    add(
        Field::OccurredAt,
        time_bytes(Micros(record.occurred_at_micros)),
    );
    add(
        Field::CreatedAt,
        time_bytes(Micros(record.created_at_micros)),
    );
    add(
        Field::UpdatedAt,
        time_bytes(Micros(record.updated_at_micros)),
    );
    if let Some(at) = record.expires_at_micros {
        add(Field::ExpiresAt, time_bytes(Micros(at)));
    }
    for attribute in &record.metadata {
        if let Some(value) = &attribute.value {
            add_metadata(&mut all, &attribute.name, value);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Recursion is bounded by the depth limit that values have at the door.
fn add_metadata(all: &mut Vec<Attribute>, path: &str, value: &Value) {
    let bytes = match &value.kind {
        None => return,
        Some(ValueKind::BoolValue(value)) => vec![BOOL, u8::from(*value)],
        Some(ValueKind::IntValue(value)) => integer_bytes(*value),
        Some(ValueKind::DoubleValue(value)) => number_bytes(*value, 0),
        Some(ValueKind::StringValue(value)) => text_bytes(value),
        Some(ValueKind::TimeValue(value)) => time_bytes(Micros(
            value.seconds * 1_000_000 + i64::from(value.nanos) / 1000,
        )),
        Some(ValueKind::ListValue(list)) => {
            for value in &list.values {
                add_metadata(all, path, value);
            }
            vec![CONTAINER]
        }
        Some(ValueKind::MapValue(map)) => {
            for (name, value) in &map.fields {
                add_metadata(all, &format!("{path}.{name}"), value);
            }
            vec![CONTAINER]
        }
    };
    all.push(Attribute {
        field: index_name(&Field::Metadata(path.to_owned())),
        value: bytes,
    });
}

/// Adds a document to, or removes it from, the sets of its attributes.
pub(crate) fn update(
    txn: &mut WriteTxn<'_>,
    schema: &Schema,
    ns: NamespaceId,
    doc: Row,
    record: &Record,
    present: bool,
) -> Result<(), StoreError> {
    let (chunk, member) = docs::split(doc.0);
    for attribute in of_record(record) {
        let key = keys::chunk(
            &keys::attribute(ns, &attribute.field, &attribute.value),
            chunk,
        );
        let mut members = match schema.attributes.get(txn, &key)? {
            Some(bytes) => docs::decode(bytes).ok_or_else(|| schema.attributes.damaged(&key))?,
            None => RoaringBitmap::new(),
        };
        if present {
            members.insert(u32::from(member));
        } else {
            members.remove(u32::from(member));
        }
        match docs::encode(&members) {
            Some(bytes) => schema.attributes.put(txn, &key, &bytes)?,
            None => {
                schema.attributes.delete(txn, &key)?;
            }
        }
    }
    Ok(())
}

/// Answers filters in one namespace of one snapshot.
pub(crate) struct Evaluator<'t, 'e> {
    pub(crate) txn: &'t Txn<'e>,
    pub(crate) schema: &'t Schema,
    pub(crate) ns: NamespaceId,
}

impl Evaluator<'_, '_> {
    /// The documents that a selection allows; None: all.
    pub(crate) fn select(
        &self,
        selection: &Selection,
    ) -> Result<Option<RoaringBitmap>, StoreError> {
        let mut allowed: Option<RoaringBitmap> = None;
        let mut narrow = |set: RoaringBitmap| match &mut allowed {
            None => allowed = Some(set),
            Some(allowed) => *allowed &= set,
        };
        if let Some(filter) = &selection.filter {
            narrow(self.filter(filter)?);
        }
        if !selection.kinds.is_empty() {
            narrow(self.one_of(
                &Field::Kind,
                selection.kinds.iter().map(|kind| text_bytes(kind)),
            )?);
        }
        for tag in &selection.tags {
            narrow(self.one_of(&Field::Tags, [text_bytes(tag)].into_iter())?);
        }
        if selection.occurred_from.is_some() || selection.occurred_before.is_some() {
            let lower = selection
                .occurred_from
                .map_or(Bound::Unbounded, |at| Bound::Included(time_bytes(at)));
            let upper = selection
                .occurred_before
                .map_or(Bound::Unbounded, |at| Bound::Excluded(time_bytes(at)));
            narrow(self.range(&Field::OccurredAt, TIME, lower, upper)?);
        }
        Ok(allowed)
    }

    /// The live documents that satisfy a filter.
    pub(crate) fn filter(&self, filter: &Filter) -> Result<RoaringBitmap, StoreError> {
        match filter {
            Filter::All(filters) => {
                let mut sets = filters.iter();
                let mut all = match sets.next() {
                    Some(first) => self.filter(first)?,
                    None => self.every()?,
                };
                for filter in sets {
                    if all.is_empty() {
                        break;
                    }
                    all &= self.filter(filter)?;
                }
                Ok(all)
            }
            Filter::Any(filters) => {
                let mut any = RoaringBitmap::new();
                for filter in filters {
                    any |= self.filter(filter)?;
                }
                Ok(any)
            }
            Filter::Not(filter) => Ok(self.every()? - self.filter(filter)?),
            Filter::Test { field, test } => self.test(field, test),
        }
    }

    /// The latest `occurred_at` of a live document; None when there is none.
    pub(crate) fn newest(&self) -> Result<Option<Micros>, StoreError> {
        Ok(self
            .greatest(&Field::OccurredAt, TIME)?
            .map(keys::read_instant))
    }

    /// The greatest importance and the greatest confidence of a live document; 1 when there is none.
    pub(crate) fn most(&self) -> Result<(f64, f64), StoreError> {
        let most = |field| {
            let bytes = self.greatest(&field, NUMBER)?;
            Ok(bytes.map_or(1.0, read_double))
        };
        Ok((most(Field::Importance)?, most(Field::Confidence)?))
    }

    /// The first bytes of a field's greatest value of a type.
    fn greatest(&self, field: &Field, kind: u8) -> Result<Option<[u8; 8]>, StoreError> {
        let mut values = keys::field(self.ns, &index_name(field));
        values.push(kind);
        let mut behind = values.clone();
        behind.push(u8::MAX);
        let last = self.schema.attributes.at_or_before(self.txn, &behind)?;
        Ok(last.and_then(|(key, _)| key.strip_prefix(&values[..])?.first_chunk().copied()))
    }

    /// Every live document.
    pub(crate) fn every(&self) -> Result<RoaringBitmap, StoreError> {
        self.under(&keys::attribute(self.ns, EVERY, &[]))
    }

    fn test(&self, field: &Field, test: &Test) -> Result<RoaringBitmap, StoreError> {
        match test {
            Test::OneOf(values) => self.one_of(field, values.iter().map(scalar_bytes)),
            Test::Exists(true) => self.under(&keys::field(self.ns, &index_name(field))),
            Test::Exists(false) => {
                Ok(self.every()? - self.under(&keys::field(self.ns, &index_name(field)))?)
            }
            Test::Prefix(prefix) => {
                let mut key = keys::field(self.ns, &index_name(field));
                key.extend_from_slice(&text_bytes(prefix));
                self.under(&key)
            }
            Test::Range(lower, upper) => {
                let of_type = match (lower, upper) {
                    (Bound::Included(value) | Bound::Excluded(value), _)
                    | (_, Bound::Included(value) | Bound::Excluded(value)) => {
                        scalar_bytes(value)[0]
                    }
                    (Bound::Unbounded, Bound::Unbounded) => {
                        return self.test(field, &Test::Exists(true));
                    }
                };
                let bytes = |bound: &Bound<Scalar>| bound.as_ref().map(scalar_bytes);
                self.range(field, of_type, bytes(lower), bytes(upper))
            }
        }
    }

    fn one_of(
        &self,
        field: &Field,
        values: impl Iterator<Item = Vec<u8>>,
    ) -> Result<RoaringBitmap, StoreError> {
        let mut any = RoaringBitmap::new();
        for value in values {
            self.add_under(
                &mut any,
                &keys::attribute(self.ns, &index_name(field), &value),
            )?;
        }
        Ok(any)
    }

    /// Documents with a value of type `of_type` between the bounds.
    fn range(
        &self,
        field: &Field,
        of_type: u8,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
    ) -> Result<RoaringBitmap, StoreError> {
        let name = index_name(field);
        // A value's chunks follow its key, so a bound lies before the first of them or behind the last.
        let before = |value: &[u8]| keys::attribute(self.ns, &name, value);
        let behind = |value: &[u8]| keys::chunk(&before(value), u16::MAX);
        let whole = |of_type: u8| {
            let mut key = keys::field(self.ns, &name);
            key.push(of_type);
            key
        };
        let from = match lower {
            Bound::Included(value) => Bound::Included(before(&value)),
            Bound::Excluded(value) => Bound::Excluded(behind(&value)),
            Bound::Unbounded => Bound::Included(whole(of_type)),
        };
        let to = match upper {
            Bound::Included(value) => Bound::Included(behind(&value)),
            Bound::Excluded(value) => Bound::Excluded(before(&value)),
            Bound::Unbounded => Bound::Excluded(whole(of_type + 1)),
        };
        let mut set = RoaringBitmap::new();
        if let (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) =
            (&from, &to)
            && a >= b
            && !(a == b && matches!((&from, &to), (Bound::Included(_), Bound::Included(_))))
        {
            return Ok(set);
        }
        let entries = self.schema.attributes.range(
            self.txn,
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        )?;
        for entry in entries {
            self.add_chunk(&mut set, entry?)?;
        }
        Ok(set)
    }

    fn under(&self, prefix: &[u8]) -> Result<RoaringBitmap, StoreError> {
        let mut set = RoaringBitmap::new();
        self.add_under(&mut set, prefix)?;
        Ok(set)
    }

    fn add_under(&self, set: &mut RoaringBitmap, prefix: &[u8]) -> Result<(), StoreError> {
        for entry in self.schema.attributes.prefix(self.txn, prefix)? {
            self.add_chunk(set, entry?)?;
        }
        Ok(())
    }

    fn add_chunk(
        &self,
        set: &mut RoaringBitmap,
        (key, bytes): (&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        let damaged = || self.schema.attributes.damaged(key);
        let chunk = u16::from_be_bytes(*key.last_chunk::<2>().ok_or_else(damaged)?);
        docs::add_to(set, chunk, bytes).ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near_integers() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            -1000..1000i64,
            (50..63u32, -3..3i64).prop_map(|(bits, off)| (1i64 << bits).wrapping_add(off)),
            Just(i64::MAX),
            Just(i64::MIN),
        ]
    }

    /// Exact comparison of an integer and a double, by splitting the double.
    fn compare(integer: i64, double: f64) -> std::cmp::Ordering {
        let whole = double.floor();
        if whole >= 9_223_372_036_854_775_808.0 {
            return std::cmp::Ordering::Less;
        }
        if whole < -9_223_372_036_854_775_808.0 {
            return std::cmp::Ordering::Greater;
        }
        integer.cmp(&(whole as i64)).then(if double > whole {
            std::cmp::Ordering::Less
        } else {
            std::cmp::Ordering::Equal
        })
    }

    proptest! {
        #[test]
        fn integers_sort_exactly(a in near_integers(), b in near_integers()) {
            prop_assert_eq!(integer_bytes(a).cmp(&integer_bytes(b)), a.cmp(&b));
        }

        #[test]
        fn integers_and_doubles_sort_as_numbers(a in near_integers(), b in prop_oneof![
            near_integers().prop_map(|i| i as f64),
            proptest::num::f64::NORMAL,
            Just(0.0), Just(-0.0), Just(0.5),
        ]) {
            prop_assert_eq!(integer_bytes(a).cmp(&number_bytes(b, 0)), compare(a, b));
        }

        #[test]
        fn doubles_sort(a in proptest::num::f64::NORMAL | proptest::num::f64::ZERO, b in proptest::num::f64::NORMAL) {
            prop_assert_eq!(number_bytes(a, 0).cmp(&number_bytes(b, 0)), a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal));
        }
    }

    proptest! {
        #[test]
        fn a_double_reads_back_and_sorts_by_its_bytes(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(read_double(double_order(a)).partial_cmp(&a), Some(std::cmp::Ordering::Equal));
            prop_assert_eq!(double_order(a).cmp(&double_order(b)), a.partial_cmp(&b).unwrap());
        }
    }
}
