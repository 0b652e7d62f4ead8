//! The door: requests of the contract to questions of the engine, or the list of everything that is wrong with them.
//!
//! One file a message. Each function reports what is wrong to the [`Report`] and always returns a value, which is
//! arbitrary where something was wrong: [`Report::finish`] lets it through only when nothing was. Nothing here knows
//! what is stored.

mod brief;
mod count_tokens;
mod delete;
mod fields;
mod filter;
mod get;
mod item;
mod namespace;
mod query;
mod report;
mod search;
mod value;
mod write;

use recalld_counters::Counters;
use recalld_store::ids::Micros;

pub(crate) use brief::brief;
pub(crate) use count_tokens::count_tokens;
pub(crate) use delete::delete;
pub(crate) use get::get;
pub(crate) use namespace::only_namespace;
pub(crate) use search::{batch_search, search, why_not};
pub(crate) use write::{item_count, write};

/// What a request is checked against besides the contract.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The counters of tokens.
    pub(crate) counters: &'a Counters,
    /// Dimensions of the store's embedder.
    pub(crate) dimensions: u32,
    /// The time of the call.
    pub(crate) now: Micros,
}

#[cfg(test)]
mod tests;
