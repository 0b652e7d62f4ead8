//! `Filter`: a tree of conditions, each of which must fit the type of its field.

use std::ops::Bound;

use recalld_engine::filter::{Field, Filter, Scalar, Test, Type};
use recalld_proto::v1;
use recalld_proto::v1::condition::Test as GivenTest;
use recalld_proto::v1::filter::Node;
use recalld_proto::v1::value::Kind;

use super::fields::{Characters, instant, text};
use super::report::{Path, Report, is_name, quoted};
use super::value::{finite, no_nul, unset};
use crate::limits::{
    MAX_FILTER_DEPTH, MAX_FILTER_NODES, MAX_IN_VALUES, MAX_PREFIX_BYTES, MAX_VALUE_DEPTH,
};

/// The field `filter` of a request.
pub(super) fn filter(report: &mut Report, value: Option<v1::Filter>) -> Option<Filter> {
    let at = Path::field("filter");
    let mut nodes = 0;
    let filter = value.map(|value| node(report, &at, value, 1, &mut nodes));
    if nodes > MAX_FILTER_NODES {
        report.wrong(
            &at,
            format_args!("must have at most {MAX_FILTER_NODES} nodes, not {nodes}"),
        );
    }
    filter
}

/// What stands for a node that is wrong; it never gets past the report.
const WRONG: Filter = Filter::All(Vec::new());

fn node(
    report: &mut Report,
    at: &Path<'_>,
    value: v1::Filter,
    depth: usize,
    nodes: &mut usize,
) -> Filter {
    *nodes += 1;
    if depth > MAX_FILTER_DEPTH {
        report.wrong(at, format_args!("must be at most {MAX_FILTER_DEPTH} deep"));
        return WRONG;
    }
    let mut list = |at: Path<'_>, list: v1::FilterList| {
        if list.filters.is_empty() {
            report.wrong(&at, "must have at least one filter");
        }
        let filters = list.filters.into_iter().enumerate();
        filters
            .map(|(i, filter)| node(report, &at.index(i), filter, depth + 1, nodes))
            .collect()
    };
    match value.node {
        Some(Node::All(filters)) => Filter::All(list(at.child("all"), filters)),
        Some(Node::Any(filters)) => Filter::Any(list(at.child("any"), filters)),
        Some(Node::Not(filter)) => Filter::Not(Box::new(node(
            report,
            &at.child("not"),
            *filter,
            depth + 1,
            nodes,
        ))),
        Some(Node::Condition(given)) => condition(report, &at.child("condition"), given),
        None => {
            report.wrong(at, "must have one of `all`, `any`, `not` and `condition`");
            WRONG
        }
    }
}

fn condition(report: &mut Report, at: &Path<'_>, given: v1::Condition) -> Filter {
    let field = field(report, &at.child("field"), &given.field);
    // Of a field that is not known any value may be right.
    let wanted = field.as_ref().and_then(Field::value_type);
    let test = match given.test {
        Some(GivenTest::Equals(value)) => {
            scalar(report, &at.child("equals"), value, wanted).map(|value| Test::OneOf(vec![value]))
        }
        Some(GivenTest::In(list)) => Some(one_of(report, &at.child("in"), list, wanted)),
        Some(GivenTest::Range(range)) => {
            Some(self::range(report, &at.child("range"), range, wanted))
        }
        Some(GivenTest::Exists(exists)) => Some(Test::Exists(exists)),
        Some(GivenTest::Prefix(prefix)) => {
            let at = at.child("prefix");
            if wanted.is_some_and(|wanted| wanted != Type::Text) {
                report.wrong(&at, "must be on a field of text");
            }
            text(report, &at, &prefix, 0..=MAX_PREFIX_BYTES, Characters::Any);
            Some(Test::Prefix(prefix))
        }
        None => {
            report.wrong(
                at,
                "must have one of `equals`, `in`, `range`, `exists` and `prefix`",
            );
            None
        }
    };
    match (field, test) {
        (Some(field), Some(test)) => Filter::Test { field, test },
        _ => WRONG,
    }
}

fn field(report: &mut Report, at: &Path<'_>, name: &str) -> Option<Field> {
    // A path of metadata that no memory can have is a mistake too.
    let field = Field::parse(name).filter(|field| match field {
        Field::Metadata(path) => {
            path.split('.').count() <= MAX_VALUE_DEPTH && path.split('.').all(is_name)
        }
        _ => true,
    });
    if field.is_none() {
        let known = Field::NAMED.map(|(name, _)| name).join(", ");
        report.wrong(
            at,
            format_args!(
                "must be one of {known} and metadata.<path>, not {}",
                quoted(name)
            ),
        );
    }
    field
}

fn one_of(report: &mut Report, at: &Path<'_>, list: v1::ValueList, wanted: Option<Type>) -> Test {
    let values = list.values;
    if !(1..=MAX_IN_VALUES).contains(&values.len()) {
        report.wrong(
            at,
            format_args!("must be 1 to {MAX_IN_VALUES} values, not {}", values.len()),
        );
    }
    let scalars: Vec<Scalar> = values
        .into_iter()
        .enumerate()
        .filter_map(|(i, value)| scalar(report, &at.index(i), value, wanted))
        .collect();
    Test::OneOf(scalars)
}

fn range(report: &mut Report, at: &Path<'_>, range: v1::Range, wanted: Option<Type>) -> Test {
    let v1::Range { gte, gt, lte, lt } = range;
    if gte.is_some() && gt.is_some() {
        report.wrong(at, "must have one of `gte` and `gt`, not both");
    }
    if lte.is_some() && lt.is_some() {
        report.wrong(at, "must have one of `lte` and `lt`, not both");
    }
    if gte.is_none() && gt.is_none() && lte.is_none() && lt.is_none() {
        report.wrong(at, "must have at least one bound");
    }
    let mut types = Vec::with_capacity(2);
    let mut bound = |name: &'static str, value: Option<v1::Value>| {
        let at = at.child(name);
        let scalar = scalar(report, &at, value?, wanted)?;
        if scalar.value_type() == Type::Bool {
            report.wrong(&at, "must be a number, a time or text");
        }
        if matches!(&scalar, Scalar::Text(text) if text.len() > MAX_PREFIX_BYTES) {
            report.wrong(
                &at,
                format_args!("must be at most {MAX_PREFIX_BYTES} bytes"),
            );
        }
        types.push(scalar.value_type());
        Some(scalar)
    };
    let [gte, gt, lte, lt] = [
        bound("gte", gte),
        bound("gt", gt),
        bound("lte", lte),
        bound("lt", lt),
    ];
    if types.windows(2).any(|pair| pair[0] != pair[1]) {
        report.wrong(at, "must have bounds of one type");
    }
    let side = |inclusive: Option<Scalar>, exclusive: Option<Scalar>| {
        inclusive
            .map(Bound::Included)
            .or(exclusive.map(Bound::Excluded))
            .unwrap_or(Bound::Unbounded)
    };
    Test::Range(side(gte, gt), side(lte, lt))
}

/// A value to compare with; None when it cannot be one.
fn scalar(
    report: &mut Report,
    at: &Path<'_>,
    value: v1::Value,
    wanted: Option<Type>,
) -> Option<Scalar> {
    let scalar = match value.kind {
        Some(Kind::BoolValue(value)) => Scalar::Bool(value),
        Some(Kind::IntValue(value)) => Scalar::Int(value),
        Some(Kind::DoubleValue(value)) => {
            finite(report, at, value);
            Scalar::Double(value)
        }
        Some(Kind::StringValue(value)) => {
            no_nul(report, at, &value);
            Scalar::Text(value)
        }
        Some(Kind::TimeValue(value)) => Scalar::Time(instant(report, at, &value)?),
        Some(Kind::ListValue(_) | Kind::MapValue(_)) => {
            report.wrong(at, "must be a single value, not a list or a map");
            return None;
        }
        None => {
            unset(report, at);
            return None;
        }
    };
    if wanted.is_some_and(|wanted| wanted != scalar.value_type()) {
        let wanted = match wanted {
            Some(Type::Bool) => "true or false",
            Some(Type::Number) => "a number",
            Some(Type::Text) => "text",
            Some(Type::Time) | None => "a time",
        };
        report.wrong(at, format_args!("must be {wanted}, as the field is"));
    }
    Some(scalar)
}
