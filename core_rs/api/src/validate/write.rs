//! `WriteRequest`.

use std::collections::HashMap;

use prost::Message;
use recalld_engine::types::{NewMemory, Write};
use recalld_proto::v1::WriteRequest;

use super::Context;
use super::fields::idempotency;
use super::item::item;
use super::namespace::namespace;
use super::report::{Path, Report};
use crate::error::Failure;
use crate::limits::{MAX_ITEMS, MAX_ITEMS_BYTES};

/// A request with its items passed over.
#[derive(Clone, PartialEq, Message)]
struct Items {
    #[prost(message, repeated, tag = "2")]
    items: Vec<()>,
}

/// Refuses a request of too many items before they are decoded: an empty one costs two bytes on the wire and hundreds
/// in memory. A request that does not parse is left to its own decoding.
pub(crate) fn item_count(request: &[u8]) -> Result<(), Failure> {
    let count = Items::decode(request).map_or(0, |request| request.items.len());
    let mut report = Report::default();
    if count > MAX_ITEMS {
        number_of_items(&mut report, count);
    }
    report.finish(())
}

fn number_of_items(report: &mut Report, count: usize) {
    report.wrong(
        &Path::field("items"),
        format_args!("must be 1 to {MAX_ITEMS} items, not {count}"),
    );
}

/// Checks a request to write; `actor` is who asks.
pub(crate) fn write(
    mut request: WriteRequest,
    actor: &str,
    context: Context<'_>,
) -> Result<Write, Failure> {
    let mut report = Report::default();
    let key = std::mem::take(&mut request.idempotency_key);
    let idempotency = idempotency(&mut report, key, "Write", &request);
    let at = Path::field("items");
    if !(1..=MAX_ITEMS).contains(&request.items.len()) {
        number_of_items(&mut report, request.items.len());
    }
    let bytes: usize = request.items.iter().map(Message::encoded_len).sum();
    if bytes > MAX_ITEMS_BYTES {
        report.wrong(
            &at,
            format_args!("must be at most {MAX_ITEMS_BYTES} bytes in all, not {bytes}"),
        );
    }
    let namespace = namespace(&mut report, request.namespace);
    let items: Vec<NewMemory> = request
        .items
        .into_iter()
        .enumerate()
        .map(|(i, given)| item(&mut report, &at.index(i), given, context))
        .collect();
    keys_stand_once(&mut report, &at, &items);
    report.finish(Write {
        namespace,
        items,
        idempotency,
        actor: actor.to_owned(),
    })
}

fn keys_stand_once(report: &mut Report, at: &Path<'_>, items: &[NewMemory]) {
    let mut first = HashMap::new();
    for (i, item) in items
        .iter()
        .enumerate()
        .filter(|(_, item)| !item.key.is_empty())
    {
        if let Some(first) = first.insert(item.key.as_str(), i) {
            report.wrong(
                &at.index(i).child("key"),
                format_args!("stands in items[{first}] already"),
            );
        }
    }
}
