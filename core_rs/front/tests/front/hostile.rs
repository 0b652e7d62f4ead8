//! Peers that are slow, dead, greedy or rude cost what the limits say, and the others notice nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::Response;
use proptest::prelude::*;
use recalld_front::{Call, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::{
    Answer, Client, ECHO, Running, SECONDS, Served, block_on, echoing, framed, request,
    request_with, send_body,
};

/// What a client says first: the preface and empty settings.
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const SOON: Duration = Duration::from_millis(50);

async fn still_serves(running: &Running) {
    let client = Client::unix(running).await;
    assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
}

/// Reads until the server closes.
async fn closed(io: &mut UnixStream) {
    let mut unread = Vec::new();
    // It may reset what it did not read.
    let _ = io.read_to_end(&mut unread).await;
}

#[test]
fn who_does_not_speak_http2_is_closed() {
    let running = echoing().run(Limits {
        handshake: SOON,
        ..Limits::default()
    });
    block_on(async {
        let mut silent = UnixStream::connect(&running.socket).await.unwrap();
        let mut wrong = UnixStream::connect(&running.socket).await.unwrap();
        wrong
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        closed(&mut silent).await;
        closed(&mut wrong).await;
        still_serves(&running).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_bytes_end_more_than_their_connection(
        frames in prop::collection::vec((0u8..12, any::<u8>(), 0u32..8, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
        junk in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let running = echoing().run(Limits::default());
        block_on(async {
            let mut io = UnixStream::connect(&running.socket).await.unwrap();
            let mut bytes = OPENING.to_vec();
            for (kind, flags, stream, payload) in frames {
                bytes.extend([0, 0, payload.len() as u8, kind, flags]);
                bytes.extend(stream.to_be_bytes());
                bytes.extend(payload);
            }
            bytes.extend(junk);
            // It may close before it has read all.
            let _ = io.write_all(&bytes).await;
            let _ = io.shutdown().await;
            closed(&mut io).await;
            still_serves(&running).await;
        });
        prop_assert!(running.front.stop(SECONDS, None));
    }
}

#[test]
fn a_peer_that_does_not_answer_pings_is_closed_and_others_are_not() {
    let running = echoing().run(Limits {
        ping_every: SOON,
        ping_timeout: SOON,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let mut dead = UnixStream::connect(&running.socket).await.unwrap();
        dead.write_all(OPENING).await.unwrap();
        closed(&mut dead).await;
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
}

#[test]
fn connections_beyond_the_limit_are_closed_until_one_ends() {
    let running = echoing().run(Limits {
        connections: 1,
        ..Limits::default()
    });
    block_on(async {
        let first = Client::unix(&running).await;
        assert_eq!(first.call(ECHO, b"x").await.message(), b"x");
        let mut second = UnixStream::connect(&running.socket).await.unwrap();
        closed(&mut second).await;
        assert_eq!(first.call(ECHO, b"x").await.message(), b"x");
        drop(first.requests);
        first.ended.await.unwrap().unwrap();
        loop {
            let io = UnixStream::connect(&running.socket).await.unwrap();
            // Its place is free a moment after the connection is closed.
            if let Ok((requests, connection)) = h2::client::handshake(io).await {
                let ended = tokio::spawn(connection);
                if let Ok(mut ready) = requests.ready().await
                    && let Ok((answer, mut send)) = ready.send_request(request(ECHO), false)
                {
                    send_body(&mut send, framed(b"x").into()).await;
                    if Answer::of(answer).await.code() == Some(0) {
                        break;
                    }
                }
                ended.abort();
            }
        }
    });
}

#[test]
fn a_reader_that_stands_still_is_given_up() {
    let running = Served::new()
        .unary("/large", |_: &Call<'_>| Ok(vec![0; 1 << 20]))
        .unary(ECHO, crate::support::echo)
        .run(Limits {
            stall: SOON,
            requests: 1,
            ..Limits::default()
        });
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request("/large")).await;
        send_body(&mut send, framed(b"").into()).await;
        let mut body = answer.await.unwrap().into_body();
        // Without a window for more, nothing more comes but the end.
        let error = loop {
            match body.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("the whole answer came through a window that is smaller"),
            }
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        // On a connection of its own: what was not read takes up the window of this one.
        let other = Client::unix(&running).await;
        while other.call(ECHO, b"x").await.code() != Some(0) {
            tokio::task::yield_now().await;
        }
    });
}

const LARGE: usize = 1 << 20;

/// Two large answers that stay unread, and the client, whose third request was refused.
async fn unread_answers(running: &Running) -> (Client, [Response<RecvStream>; 2]) {
    let client = Client::unix(running).await;
    let ask = async || {
        let (answer, mut send) = client.begin(request("/large")).await;
        send_body(&mut send, framed(b"").into()).await;
        answer.await.unwrap()
    };
    let unread = [ask().await, ask().await];
    assert_eq!(ask().await.headers()["grpc-status"], "8");
    (client, unread)
}

#[test]
fn answers_that_nobody_reads_are_bounded() {
    let running = Served::new()
        .unary("/large", |_: &Call<'_>| Ok(vec![0; LARGE]))
        .unary(ECHO, crate::support::echo)
        .run(Limits {
            unread_bytes_a_connection: 2 * LARGE,
            held_bytes: 4 * LARGE,
            ..Limits::default()
        });
    block_on(async {
        let first = unread_answers(&running).await;
        let other = Client::unix(&running).await;
        assert_eq!(other.call(ECHO, b"x").await.message(), b"x");
        // Together, too.
        let second = unread_answers(&running).await;
        assert_eq!(other.call(ECHO, b"x").await.code(), Some(8));
        drop((first, second));
        while other.call(ECHO, b"x").await.code() != Some(0) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_sender_that_stands_still_is_given_up() {
    let running = echoing().run(Limits {
        stall: SOON,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(ECHO)).await;
        send.send_data(framed(b"abc")[..6].to_vec().into(), false)
            .unwrap();
        assert_eq!(Answer::of(answer).await.code(), Some(13));
    });
}

#[test]
fn a_flood_of_resets_ends_its_connection() {
    let running = echoing().run(Limits::default());
    block_on(async {
        let io = UnixStream::connect(&running.socket).await.unwrap();
        let (mut read, mut write) = io.into_split();
        let mut bytes = OPENING.to_vec();
        // POST, http, /, and no authority: HEADERS and RST_STREAM in one write, over and over.
        let flood = (0..20_000u32).flat_map(|number| {
            let stream = (2 * number + 1).to_be_bytes();
            let headers = [&[0, 0, 3, 1, 4][..], &stream, &[0x83, 0x86, 0x84]].concat();
            let reset = [&[0, 0, 4, 3, 0][..], &stream, &8u32.to_be_bytes()].concat();
            [headers, reset].concat()
        });
        bytes.extend(flood);
        let flooding = tokio::spawn(async move {
            // The server may close before it has read all.
            let _ = write.write_all(&bytes).await;
            write
        });
        let mut answer = Vec::new();
        let _ = read.read_to_end(&mut answer).await;
        let _write = flooding.await.unwrap();
        // GOAWAY with ENHANCE_YOUR_CALM.
        let mut rest = &answer[..];
        let mut reason = None;
        while let Some((head, after)) = rest.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if head[3] == 7 {
                reason = Some(u32::from_be_bytes(after[4..8].try_into().unwrap()));
            }
            rest = &after[length..];
        }
        assert_eq!(reason, Some(u32::from(Reason::ENHANCE_YOUR_CALM)));
        still_serves(&running).await;
    });
}

#[test]
fn too_much_metadata_is_refused() {
    let running = echoing().run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        for (bytes, http, code) in [(20_000, 200, Some(8)), (80_000, 431, None)] {
            let long = "x".repeat(bytes);
            let given = request_with(ECHO, &[("x-long", &long)]);
            let answer = client.ask(given, framed(b"")).await;
            assert_eq!((answer.http, answer.code()), (http, code));
        }
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
}

/// A front whose one handler says when it has begun and waits until it is told to go on.
fn waiting() -> (Running, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (say_begun, begun) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let channels = Mutex::new((say_begun, wait));
    let handler = move |call: &Call<'_>| {
        let (say_begun, wait) = &*channels.lock().unwrap();
        say_begun.send(()).unwrap();
        let _: Result<(), _> = wait.recv();
        crate::support::echo(call)
    };
    let running = Served::new().unary(ECHO, handler).run(Limits::default());
    (running, begun, go_on)
}

/// Begins a call and waits until its handler has begun.
async fn in_hand(client: &Client, begun: mpsc::Receiver<()>) -> ResponseFuture {
    let (answer, mut send) = client.begin(request(ECHO)).await;
    send_body(&mut send, framed(b"done").into()).await;
    blocking(move || begun.recv().unwrap()).await;
    answer
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[test]
fn a_stop_lets_requests_in_hand_finish() {
    let (running, begun, go_on) = waiting();
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = in_hand(&client, begun).await;
        running.front.drain();
        // Nobody else comes in.
        while UnixStream::connect(&running.socket).await.is_ok() {
            tokio::task::yield_now().await;
        }
        go_on.send(()).unwrap();
        assert_eq!(Answer::of(answer).await.message(), b"done");
    });
    assert!(running.front.stop(SECONDS, None));
}

#[test]
fn a_stop_answers_all_that_it_took() {
    for _ in 0..20 {
        let handled = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&handled);
        let running = Served::new()
            .unary(ECHO, move |call: &Call<'_>| {
                counted.fetch_add(1, Ordering::Relaxed);
                crate::support::echo(call)
            })
            .run(Limits::default());
        let answered = block_on(async {
            // Many small answers come at once, which the client's own budget shall bear.
            let mut builder = h2::client::Builder::new();
            builder.data_frame_budget(64 << 20);
            let io = UnixStream::connect(&running.socket).await.unwrap();
            let client = Client::with(&builder, io).await;
            assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
            let mut calls = tokio::task::JoinSet::new();
            for _ in 0..200 {
                let mut ready = client.requests.clone().ready().await.unwrap();
                let (answer, mut send) = ready.send_request(request(ECHO), false).unwrap();
                send.send_data(framed(b"x").into(), true).unwrap();
                calls.spawn(Answer::of(answer));
            }
            let stopped = blocking(move || (running.front.stop(SECONDS, None), running));
            let (answers, (drained, running)) = tokio::join!(calls.join_all(), stopped);
            assert!(drained);
            blocking(move || drop(running)).await;
            let (ok, refused): (Vec<_>, Vec<_>) = answers
                .into_iter()
                .partition(|answer| answer.code() == Some(0));
            for answer in refused {
                assert!(
                    matches!(
                        answer.reset,
                        Some(Reason::REFUSED_STREAM | Reason::NO_ERROR)
                    ),
                    "{answer:?}"
                );
            }
            ok.len()
        });
        assert_eq!(answered + 1, handled.load(Ordering::Relaxed));
    }
}

#[test]
fn a_stop_ends_in_time() {
    let (running, begun, go_on) = waiting();
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = in_hand(&client, begun).await;
        let (running, drained) = blocking(move || {
            let drained = running.front.stop(SOON, None);
            (running, drained)
        })
        .await;
        assert!(!drained);
        assert!(Answer::of(answer).await.reset.is_some());
        let _ = client.ended.await.unwrap();
        // Its threads cannot be ended within a runtime, and nothing waits for the handler.
        blocking(move || drop(running)).await;
    });
    drop(go_on);
}

#[test]
fn many_refused_uploads_leave_the_connection_as_it_was() {
    let running = echoing().run(Limits {
        message_bytes: 1000,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..400 {
            let (answer, mut send) = client.begin(request(ECHO)).await;
            calls.spawn(async move {
                let body = framed(&vec![0; 100_000]);
                tokio::join!(send_body(&mut send, body.into()), Answer::of(answer)).1
            });
        }
        for answer in calls.join_all().await {
            assert_eq!(answer.code(), Some(8), "{answer:?}");
        }
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
}
