//! Analysis of texts: token counts, terms, passages, summaries and extracts of English, Chinese, JSON and code.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use recalld_algo::passages::{PASSAGE_CHARS, passages};
use recalld_algo::protect::protected;
use recalld_algo::statement::statement;
use recalld_algo::summary::{QueryTerms, answer, flatten_json, headline, summarize};
use recalld_algo::terms::Analyzer;
use recalld_algo::tokens::{Encoding, warm};

const ENGLISH: &str = "The customer asked for a refund of order ORD-2024-00017 because the parcel came two days late. \
    She prefers to be called after 6 pm, never on weekends, and wants the amount of $129.90 on the same card. \
    Our policy allows it only if the form is signed before May 17, 2024. I told her that the form is in her inbox. \
    She also mentioned that the new shoes are comfortable, and that her sister in Lyon may order the same pair next month. ";
const CHINESE: &str = "客户要求退还订单的款项，因为包裹晚到了两天。她希望在晚上六点以后接电话，周末不要打扰。\
    退款金额是一百二十九元，必须退回原来的银行卡。如果在2024年5月17日之前没有签好表格，就不能办理。\
    她还说新鞋子很舒服，她住在成都的妹妹下个月可能也会买一双。";
const JSON: &str = r#"{"id": "ORD-2024-00017", "status": "refund_requested", "total": 129.90, "currency": "USD", "customer": {"name": "Jane Smith",
    "email": "jane.smith@example.com", "tags": ["returning", "newsletter"]}, "items": [{"sku": "SH-4410", "title": "Running shoes", "size": 38,
    "price": 99.90}, {"sku": "SO-1002", "title": "Wool socks", "size": null, "price": 30.00}], "notes": "Parcel came two days late."}"#;
const CODE: &str = "pub fn refund(order: &Order, now: Timestamp) -> Result<Refund, RefundError> {\n    if order.shipped_at + GRACE_PERIOD < now {\n        \
    return Err(RefundError::TooLate { order_id: order.id.clone() });\n    }\n    let amount: u64 = order.items.iter().map(|item| item.price_cents).sum();\n    \
    Ok(Refund { order_id: order.id.clone(), amount_cents: amount })\n}\n";

/// Has words in common with each of the texts.
const QUERY: &str = "When is the refund of order ORD-2024-00017 on the card, 退款金额?";

/// Of each kind a text of the size of a memory and one of several pages, and one that is hard for naive counters.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (name, text) in [("english", ENGLISH), ("chinese", CHINESE), ("code", CODE)] {
        texts.push((name.to_owned(), text.to_owned()));
        texts.push((format!("{name}_long"), text.repeat(32)));
    }
    texts.push(("json".to_owned(), JSON.to_owned()));
    texts.push((
        "json_long".to_owned(),
        format!("[{}]", vec![JSON; 32].join(", ")),
    ));
    texts.push(("one_letter".to_owned(), "a".repeat(100 * 1024)));
    texts
}

fn benchmarks(criterion: &mut Criterion) {
    warm();
    let texts = texts();
    let mut run = |name: &str, function: &mut dyn FnMut(&str)| {
        let mut group = criterion.benchmark_group(name);
        for (kind, text) in &texts {
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_with_input(BenchmarkId::from_parameter(kind), text, |bencher, text| {
                bencher.iter(|| function(text));
            });
        }
        group.finish();
    };
    for encoding in Encoding::ALL {
        run(&format!("count/{}", encoding.name()), &mut |text| {
            black_box(encoding.count(black_box(text)));
        });
    }
    let mut analyzer = Analyzer::new();
    run("terms/analyze", &mut |text| {
        analyzer.analyze(black_box(text), &mut |term| {
            black_box(term);
        });
    });
    run("terms/counts", &mut |text| {
        black_box(analyzer.counts(black_box(text)));
    });
    run("passages", &mut |text| {
        black_box(passages(black_box(text), PASSAGE_CHARS));
    });
    run("summary", &mut |text| {
        black_box(summarize(black_box(text)));
    });
    run("headline", &mut |text| {
        black_box(headline(black_box(text)));
    });
    run("protect", &mut |text| {
        black_box(protected(black_box(text)));
    });
    run("statement", &mut |text| {
        black_box(statement(black_box(text)));
    });
    let mut terms = Vec::new();
    analyzer.analyze(QUERY, &mut |term| terms.push((term.into(), 1.0)));
    let query = QueryTerms::new(terms);
    run("extract", &mut |text| {
        let spans = passages(text, PASSAGE_CHARS);
        black_box(answer(&mut analyzer, &query, black_box(text), &spans));
    });
    criterion.bench_function("flatten/json", |bencher| {
        bencher.iter(|| flatten_json(black_box(JSON)));
    });
}

criterion_group!(text, benchmarks);
criterion_main!(text);
