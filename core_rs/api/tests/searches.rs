//! Many searches in one call or over one stream, each with its own answer or error.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Instant;

use common::{Server, item, namespace};
use prost::Message;
use recalld_api::Method;
use recalld_proto::v1::{self, search_result::Result as Outcome};

fn filled() -> Server {
    let server = Server::start();
    let items = vec![
        item("seat", "Alice prefers aisle seats."),
        item("invoice", "The invoice is due on Friday."),
    ];
    server.write(items).unwrap();
    server
}

fn search(query: &str) -> v1::SearchRequest {
    v1::SearchRequest {
        namespace: namespace(),
        query: query.to_owned(),
        ..Default::default()
    }
}

fn first_key(result: &v1::SearchResult) -> &str {
    match result.result.as_ref().unwrap() {
        Outcome::Response(response) => &response.hits[0].key,
        Outcome::Failure(failure) => panic!("{}", failure.message),
    }
}

fn failure(result: &v1::SearchResult) -> &v1::SearchFailure {
    match result.result.as_ref().unwrap() {
        Outcome::Failure(failure) => failure,
        Outcome::Response(_) => panic!("it was answered"),
    }
}

#[test]
fn a_batch_answers_each_search_or_says_what_is_wrong_with_it() {
    let server = filled();
    let wrong = v1::SearchRequest {
        limit: Some(0),
        latency_budget: Some(prost_types::Duration::default()),
        ..search("x")
    };
    let request = v1::BatchSearchRequest {
        searches: vec![search("which seat?"), wrong.clone(), search("the invoice")],
    };
    let answer: v1::BatchSearchResponse = server.call(Method::BatchSearch, &request).unwrap();
    assert_eq!(answer.results.len(), 3);
    assert_eq!(first_key(&answer.results[0]), "seat");
    assert_eq!(first_key(&answer.results[2]), "invoice");
    // The very failure of a Search.
    let bytes = wrong.encode_to_vec();
    let alone = server
        .service
        .dispatch(Method::Search.name(), "unix", &bytes, None);
    let alone = alone.unwrap_err();
    let failure = failure(&answer.results[1]);
    assert_eq!(failure.code, 3);
    assert_eq!(failure.message, alone.message);
    assert_eq!(failure.status, alone.status());
    let fields = alone
        .violations
        .iter()
        .map(|violation| violation.field.as_str());
    assert_eq!(fields.collect::<Vec<_>>(), ["limit", "latency_budget"]);
    assert!(!answer.token.is_empty() && answer.took.is_some());
}

#[test]
fn a_batch_has_one_to_256_searches() {
    let server = Server::start();
    for count in [0, 257] {
        let request = v1::BatchSearchRequest {
            searches: vec![search("x"); count],
        };
        let bytes = request.encode_to_vec();
        let name = Method::BatchSearch.name();
        let failure = server.service.dispatch(name, "unix", &bytes, None);
        assert_eq!(
            failure.unwrap_err().message,
            format!("searches: must be 1 to 256, not {count}")
        );
    }
}

#[test]
fn every_message_of_a_stream_gets_an_answer_with_its_tag() {
    let server = filled();
    let ask = |tag: u64, search: Option<v1::SearchRequest>| -> v1::SearchStreamResponse {
        let request = v1::SearchStreamRequest { tag, search };
        server.call(Method::SearchStream, &request).unwrap()
    };
    let answer = ask(u64::MAX, Some(search("which seat?")));
    assert_eq!(answer.tag, u64::MAX);
    assert_eq!(first_key(&answer.result.unwrap()), "seat");
    let answer = ask(7, None);
    assert_eq!(answer.tag, 7);
    let result = answer.result.unwrap();
    assert_eq!(failure(&result).code, 3);
    assert!(failure(&result).message.starts_with("namespace: "));
    assert_eq!(server.calls_by_code(Method::SearchStream), [(0, 1), (3, 1)]);
    assert_eq!(server.calls_by_code(Method::Search), []);
}

#[test]
fn a_stream_goes_on_when_a_search_is_late_or_refused_and_ends_when_a_message_is_none() {
    let server = Server::admitting(0);
    let name = Method::SearchStream.name();
    let request = v1::SearchStreamRequest {
        tag: 3,
        search: Some(search("x")),
    };
    let bytes = request.encode_to_vec();
    let answer = server.service.dispatch(name, "unix", &bytes, None).unwrap();
    let answer = v1::SearchStreamResponse::decode(answer.as_slice()).unwrap();
    assert_eq!((answer.tag, failure(&answer.result.unwrap()).code), (3, 8));

    let server = Server::start();
    let late = Some(Instant::now());
    let answer = server.service.dispatch(name, "unix", &bytes, late).unwrap();
    let answer = v1::SearchStreamResponse::decode(answer.as_slice()).unwrap();
    assert_eq!((answer.tag, failure(&answer.result.unwrap()).code), (3, 4));

    let none = server.service.dispatch(name, "unix", &[0xff], None);
    assert_eq!(none.unwrap_err().reason_name(), "MALFORMED_REQUEST");
}
