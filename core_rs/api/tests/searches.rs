//! Many searches in one call or over one stream, each with its own answer or error.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use recalld_api::{Method, Service, ServiceOptions};
use recalld_engine::EngineOptions;
use recalld_engine::clock::SystemClock;
use recalld_proto::v1::{self, search_result::Result as Outcome};

struct Server {
    service: Service,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(max_in_flight: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let options = ServiceOptions {
            engine: EngineOptions {
                data_dir: folder.path().join("data"),
                model_dir: root.join("sidecar/recalld_sidecar/data/static-256"),
                address: String::new(),
                max_store_bytes: 1 << 30,
                max_queued_writes: 64,
                index_after: 20_000,
                tuning: recalld_engine::Tuning::default(),
                slo: Duration::from_millis(50),
            },
            max_in_flight,
            tokenizers: BTreeMap::new(),
        };
        let service = Service::open(&options, Arc::new(SystemClock)).unwrap();
        Self {
            service,
            _folder: folder,
        }
    }

    fn filled() -> Self {
        let server = Self::start(8);
        let item = |key: &str, content: &str| v1::WriteItem {
            key: key.to_owned(),
            content: content.to_owned(),
            ..Default::default()
        };
        let request = v1::WriteRequest {
            namespace: search("").namespace,
            items: vec![
                item("seat", "Alice prefers aisle seats."),
                item("invoice", "The invoice is due on Friday."),
            ],
            ..Default::default()
        };
        let _: v1::WriteResponse = server.call(Method::Write, &request);
        server
    }

    fn call<A: Message + Default>(&self, method: Method, request: &impl Message) -> A {
        let bytes = request.encode_to_vec();
        let answer = self.service.dispatch(method.name(), "unix", &bytes, None);
        A::decode(answer.unwrap().as_slice()).unwrap()
    }

    fn counted(&self, method: Method) -> BTreeMap<u8, u64> {
        self.service.metrics().swap_remove(method as usize).codes
    }
}

fn search(query: &str) -> v1::SearchRequest {
    v1::SearchRequest {
        namespace: Some(v1::Namespace {
            segments: vec!["acme".to_owned()],
        }),
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
    let server = Server::filled();
    let wrong = v1::SearchRequest {
        limit: Some(0),
        latency_budget: Some(prost_types::Duration::default()),
        ..search("x")
    };
    let request = v1::BatchSearchRequest {
        searches: vec![search("which seat?"), wrong.clone(), search("the invoice")],
    };
    let answer: v1::BatchSearchResponse = server.call(Method::BatchSearch, &request);
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
    let server = Server::start(8);
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
    let server = Server::filled();
    let ask = |tag: u64, search: Option<v1::SearchRequest>| -> v1::SearchStreamResponse {
        let request = v1::SearchStreamRequest { tag, search };
        server.call(Method::SearchStream, &request)
    };
    let answer = ask(u64::MAX, Some(search("which seat?")));
    assert_eq!(answer.tag, u64::MAX);
    assert_eq!(first_key(&answer.result.unwrap()), "seat");
    let answer = ask(7, None);
    assert_eq!(answer.tag, 7);
    let result = answer.result.unwrap();
    assert_eq!(failure(&result).code, 3);
    assert!(failure(&result).message.starts_with("namespace: "));
    assert_eq!(
        server.counted(Method::SearchStream),
        BTreeMap::from([(0, 1), (3, 1)])
    );
    assert_eq!(server.counted(Method::Search), BTreeMap::new());
}

#[test]
fn a_stream_goes_on_when_a_search_is_late_or_refused_and_ends_when_a_message_is_none() {
    let server = Server::start(0);
    let name = Method::SearchStream.name();
    let request = v1::SearchStreamRequest {
        tag: 3,
        search: Some(search("x")),
    };
    let bytes = request.encode_to_vec();
    let answer = server.service.dispatch(name, "unix", &bytes, None).unwrap();
    let answer = v1::SearchStreamResponse::decode(answer.as_slice()).unwrap();
    assert_eq!((answer.tag, failure(&answer.result.unwrap()).code), (3, 8));

    let server = Server::start(8);
    let late = Some(Instant::now());
    let answer = server.service.dispatch(name, "unix", &bytes, late).unwrap();
    let answer = v1::SearchStreamResponse::decode(answer.as_slice()).unwrap();
    assert_eq!((answer.tag, failure(&answer.result.unwrap()).code), (3, 4));

    let none = server.service.dispatch(name, "unix", &[0xff], None);
    assert_eq!(none.unwrap_err().reason_name(), "MALFORMED_REQUEST");
}
