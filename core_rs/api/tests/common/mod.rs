#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking; helpers are named for what they do"
)]
//! What the service's tests share: a service in a folder of its own, with a clock that stands still.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use prost::Message;
use recalld_api::{Failure, Method, Service, ServiceOptions};
use recalld_engine::EngineOptions;
use recalld_engine::clock::Clock;
use recalld_proto::v1::{self, WriteItem};
use recalld_store::ids::Micros;

/// 2024-05-17T12:00:00Z
pub const NOW: i64 = 1_715_947_200;

/// A clock that stands still until it is moved.
pub struct TestClock(pub AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::SeqCst))
    }
}

pub struct Server {
    pub service: Service,
    pub clock: Arc<TestClock>,
    pub folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Self {
        Self::admitting(128)
    }

    pub fn admitting(max_in_flight: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(NOW * 1_000_000)));
        let service = Service::open(&options(folder.path(), max_in_flight), clock.clone()).unwrap();
        Self {
            service,
            clock,
            folder,
        }
    }

    pub fn call<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<A, Failure> {
        self.call_until(method, request, None)
    }

    pub fn call_until<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
        deadline: Option<Instant>,
    ) -> Result<A, Failure> {
        let answer = self.service.dispatch(
            method.name(),
            "uid:1000",
            &request.encode_to_vec(),
            deadline,
        )?;
        Ok(A::decode(answer.as_slice()).unwrap())
    }

    pub fn write(&self, items: Vec<WriteItem>) -> Result<v1::WriteResponse, Failure> {
        let request = v1::WriteRequest {
            namespace: namespace(),
            items,
            ..Default::default()
        };
        self.call(Method::Write, &request)
    }

    pub fn search(&self, query: &str) -> v1::SearchResponse {
        let request = v1::SearchRequest {
            namespace: namespace(),
            query: query.to_owned(),
            ..Default::default()
        };
        self.call(Method::Search, &request).unwrap()
    }

    pub fn calls_by_code(&self, method: Method) -> Vec<(u8, u64)> {
        let metrics = self.service.metrics().swap_remove(method as usize);
        assert_eq!(metrics.method, method.name());
        metrics.codes.into_iter().collect()
    }
}

pub fn options(folder: &Path, max_in_flight: usize) -> ServiceOptions {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ServiceOptions {
        engine: EngineOptions {
            data_dir: folder.join("data"),
            model_dir: root.join("sidecar/recalld_sidecar/data/static-256"),
            address: "here".to_owned(),
            max_store_bytes: 1 << 30,
            max_queued_writes: 64,
            index_after: 20_000,
            max_index_bytes: 1 << 32,
            tuning: recalld_engine::Tuning::default(),
            slo: Duration::from_millis(50),
        },
        max_in_flight,
        tokenizers: BTreeMap::new(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the requests' field")]
pub fn namespace() -> Option<v1::Namespace> {
    Some(v1::Namespace {
        segments: vec!["acme".to_owned(), "alice".to_owned()],
    })
}

pub fn item(key: &str, content: &str) -> WriteItem {
    WriteItem {
        key: key.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}
