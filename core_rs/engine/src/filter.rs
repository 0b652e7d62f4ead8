//! Filters as the engine knows them: typed conditions, already checked against the types of their fields.
//!
//! `attributes` says how values of a memory are indexed; a filter is answered from that index as a set of documents,
//! before ranking, so that a small result is never starved.

use std::ops::Bound;

use recalld_store::ids::Micros;

/// A tree of conditions.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All hold.
    All(Vec<Filter>),
    /// At least one holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A condition on a field.
    Test {
        /// The field.
        field: Field,
        /// The condition.
        test: Test,
    },
}

/// A field that can be filtered on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `kind`
    Kind,
    /// `tags`
    Tags,
    /// `key`
    Key,
    /// `origin`
    Origin,
    /// `source.uri`
    SourceUri,
    /// `source.session`
    SourceSession,
    /// `source.speaker`
    SourceSpeaker,
    /// `importance`
    Importance,
    /// `confidence`
    Confidence,
    /// `occurred_at`
    OccurredAt,
    /// `created_at`
    CreatedAt,
    /// `updated_at`
    UpdatedAt,
    /// `expires_at`
    ExpiresAt,
    /// `metadata.<path>`
    Metadata(String),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// True or false.
    Bool,
    /// An integer or a double.
    Number,
    /// Text.
    Text,
    /// An instant.
    Time,
}

const METADATA: &str = "metadata.";

impl Field {
    /// All fields with a fixed name.
    pub const NAMED: [(&'static str, Self); 13] = [
        ("kind", Self::Kind),
        ("tags", Self::Tags),
        ("key", Self::Key),
        ("origin", Self::Origin),
        ("source.uri", Self::SourceUri),
        ("source.session", Self::SourceSession),
        ("source.speaker", Self::SourceSpeaker),
        ("importance", Self::Importance),
        ("confidence", Self::Confidence),
        ("occurred_at", Self::OccurredAt),
        ("created_at", Self::CreatedAt),
        ("updated_at", Self::UpdatedAt),
        ("expires_at", Self::ExpiresAt),
    ];

    /// The field of that name.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(path) = name.strip_prefix(METADATA) {
            let valid = !path.is_empty() && path.split('.').all(|part| !part.is_empty());
            return valid.then(|| Self::Metadata(path.to_owned()));
        }
        Self::NAMED
            .into_iter()
            .find_map(|(known, field)| (known == name).then_some(field))
    }

    /// The type of its values; None: any.
    pub fn value_type(&self) -> Option<Type> {
        match self {
            Self::Kind
            | Self::Tags
            | Self::Key
            | Self::Origin
            | Self::SourceUri
            | Self::SourceSession
            | Self::SourceSpeaker => Some(Type::Text),
            Self::Importance | Self::Confidence => Some(Type::Number),
            Self::OccurredAt | Self::CreatedAt | Self::UpdatedAt | Self::ExpiresAt => {
                Some(Type::Time)
            }
            Self::Metadata(_) => None,
        }
    }
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// True or false.
    Bool(bool),
    /// An exact integer.
    Int(i64),
    /// A finite double. Compares with integers as a number.
    Double(f64),
    /// Text.
    Text(String),
    /// An instant.
    Time(Micros),
}

impl Scalar {
    /// Its type.
    pub fn value_type(&self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::Int(_) | Self::Double(_) => Type::Number,
            Self::Text(_) => Type::Text,
            Self::Time(_) => Type::Time,
        }
    }
}

/// A condition on the values of a field; it holds when it holds for any of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal to one of these: `equals` and `in`.
    OneOf(Vec<Scalar>),
    /// Between bounds of one type, at least one of which is given.
    Range(Bound<Scalar>, Bound<Scalar>),
    /// Present or absent.
    Exists(bool),
    /// Text that starts with this.
    Prefix(String),
}
