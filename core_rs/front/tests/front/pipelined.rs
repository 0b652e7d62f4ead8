//! Streams whose messages are answered as they come, several at a time.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use h2::Reason;
use recalld_front::{Call, Limits, Shape, Status};
use tokio::net::UnixStream;

use crate::support::{
    Answer, Client, SECONDS, Served, block_on, framed, request, request_with, send_body,
};

const STREAM: &str = "/t.T/Stream";

/// Lets handlers wait for each other and for the test.
#[derive(Default)]
struct Gates {
    open: Mutex<HashMap<Vec<u8>, bool>>,
    changed: Condvar,
}

impl Gates {
    /// Enters, and waits until the gate of this name is open.
    fn pass(&self, name: &[u8]) {
        let mut open = self.open.lock().unwrap();
        open.entry(name.to_vec()).or_insert(false);
        self.changed.notify_all();
        let closed = |open: &mut HashMap<Vec<u8>, bool>| !open[name];
        let (open, timeout) = self
            .changed
            .wait_timeout_while(open, SECONDS, closed)
            .unwrap();
        assert!(!timeout.timed_out(), "{:?}", open.keys());
    }

    fn open(&self, name: &[u8]) {
        self.open.lock().unwrap().insert(name.to_vec(), true);
        self.changed.notify_all();
    }

    fn open_all(&self, names: &[Vec<u8>]) {
        let all = names.iter().map(|name| (name.clone(), true));
        self.open.lock().unwrap().extend(all);
        self.changed.notify_all();
    }

    /// Waits until so many have entered.
    fn wait_for(&self, count: usize) {
        let open = self.open.lock().unwrap();
        let (_open, timeout) = self
            .changed
            .wait_timeout_while(open, SECONDS, |open| open.len() < count)
            .unwrap();
        assert!(!timeout.timed_out());
    }

    fn entered(&self) -> usize {
        self.open.lock().unwrap().len()
    }
}

fn gated() -> (Served, Arc<Gates>) {
    let gates = Arc::new(Gates::default());
    let inside = Arc::clone(&gates);
    let served = Served::new().with(STREAM, Shape::Pipelined, move |call: &Call<'_>| {
        if call.request == b"fail" {
            return Err(Status {
                code: 9,
                message: "no".to_owned(),
                details: vec![1],
            });
        }
        inside.pass(call.request);
        Ok(call.request.to_vec())
    });
    (served, gates)
}

async fn blocking(work: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[test]
fn answers_come_as_they_are_done() {
    let (served, gates) = gated();
    let running = served.run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client
            .begin(request_with(STREAM, &[("x-request-id", "mine")]))
            .await;
        for name in [b"a", b"b"] {
            send.send_data(framed(name).into(), false).unwrap();
        }
        gates.open(b"b");
        let mut body = answer.await.unwrap().into_body();
        let first = body.data().await.unwrap().unwrap();
        assert_eq!(first, framed(b"b"));
        send.send_data(Bytes::new(), true).unwrap();
        // The caller's end does not cut off what is missing.
        gates.open(b"a");
        let second = body.data().await.unwrap().unwrap();
        assert_eq!(second, framed(b"a"));
        assert!(body.data().await.is_none());
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["x-request-id"], "mine");
    });
}

#[test]
fn so_many_at_a_time_and_the_rest_is_not_read() {
    let (served, gates) = gated();
    let running = served.run(Limits {
        messages_a_stream: 3,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(STREAM)).await;
        // Far more than the window of the stream holds: sending goes on only as messages are read.
        let padding = "x".repeat(50_000);
        let names: Vec<Vec<u8>> = (0..20)
            .map(|number| format!("{number}{padding}").into_bytes())
            .collect();
        let bytes: Vec<u8> = names.iter().flat_map(|name| framed(name)).collect();
        let sending = tokio::spawn(async move { send_body(&mut send, bytes.into()).await });
        let entered = Arc::clone(&gates);
        blocking(move || entered.wait_for(3)).await;
        assert!(!sending.is_finished());
        assert_eq!(gates.entered(), 3);
        for name in &names {
            gates.open(name);
        }
        let mut answers = Answer::of(answer).await.messages;
        answers.sort();
        let mut expected = names;
        expected.sort();
        assert!(answers == expected);
        sending.await.unwrap();
    });
}

#[test]
fn many_small_messages_may_wait_to_be_read() {
    let (served, gates) = gated();
    let running = served.run(Limits::default());
    block_on(async {
        // The answers are small too, and the client's own budget shall not be what is tested.
        let mut builder = h2::client::Builder::new();
        builder.data_frame_budget(64 << 20);
        let io = UnixStream::connect(&running.socket).await.unwrap();
        let client = Client::with(&builder, io).await;
        let (answer, mut send) = client.begin(request(STREAM)).await;
        // As many as the stream's window holds, each in a frame of its own.
        let names: Vec<Vec<u8>> = (0..7_000)
            .map(|number| format!("message number {number:013}").into_bytes())
            .collect();
        for name in &names {
            send.send_data(framed(name).into(), false).unwrap();
        }
        send.send_data(Bytes::new(), true).unwrap();
        // All have come when a call that was sent after them is answered.
        let entered = Arc::clone(&gates);
        blocking(move || entered.wait_for(16)).await;
        assert_eq!(client.call("/t.T/Other", b"").await.code(), Some(14));
        gates.open_all(&names);
        let answer = Answer::of(answer).await;
        assert_eq!(
            (answer.code(), answer.messages.len()),
            (Some(0), names.len())
        );
    });
}

#[test]
fn an_error_ends_the_stream() {
    let (served, gates) = gated();
    let running = served.run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(STREAM)).await;
        let bytes = [framed(b"waits"), framed(b"fail"), framed(b"later")].concat();
        send.send_data(bytes.into(), false).unwrap();
        let answer = Answer::of(answer).await;
        assert_eq!(answer.code(), Some(9));
        assert_eq!(answer.trailer("grpc-message"), Some("no"));
        assert_eq!(answer.trailer("grpc-status-details-bin"), Some("AQ"));
        assert!(answer.messages.is_empty());
        gates.open(b"waits");
        gates.open(b"later");
    });
}

#[test]
fn a_malformed_message_ends_the_stream_and_a_deadline_too() {
    let (served, _gates) = gated();
    let running = served.run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = client.ask(request(STREAM), b"\x07\0\0\0\0".to_vec()).await;
        assert_eq!(answer.code(), Some(13));
        let (answer, _send) = client
            .begin(request_with(STREAM, &[("grpc-timeout", "20m")]))
            .await;
        assert_eq!(Answer::of(answer).await.code(), Some(4));
        // Nothing at all is in order.
        let answer = client.ask(request(STREAM), Vec::new()).await;
        assert_eq!((answer.code(), answer.messages.len()), (Some(0), 0));
    });
}

#[test]
fn a_caller_that_gives_up_is_not_answered_and_its_place_is_free() {
    let (served, gates) = gated();
    let running = served.run(Limits {
        requests: 1,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(STREAM)).await;
        send.send_data(framed(b"a").into(), false).unwrap();
        let entered = Arc::clone(&gates);
        blocking(move || entered.wait_for(1)).await;
        send.send_reset(Reason::CANCEL);
        drop(answer);
        while client.ask(request(STREAM), Vec::new()).await.code() != Some(0) {
            tokio::task::yield_now().await;
        }
        gates.open(b"a");
    });
}

#[test]
fn a_drain_answers_what_was_read_and_says_come_back() {
    let (served, gates) = gated();
    let running = served.run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(STREAM)).await;
        send.send_data(framed(b"a").into(), false).unwrap();
        let entered = Arc::clone(&gates);
        blocking(move || entered.wait_for(1)).await;
        running.front.drain();
        gates.open(b"a");
        let answer = Answer::of(answer).await;
        assert_eq!(answer.messages, [b"a"]);
        assert_eq!(answer.code(), Some(14));
        drop(send);
    });
    assert!(running.front.stop(SECONDS, None));
}
