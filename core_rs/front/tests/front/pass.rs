//! Passing through to a server behind the front, which is a plain h2 server of the test's own.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use recalld_front::Limits;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::support::{Client, ECHO, Running, block_on, echoing, framed, request, request_with};

const UNAVAILABLE: u32 = 14;

/// What came through.
type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

fn upstream(running: &Running, seen: &Seen) -> JoinHandle<()> {
    let listener = UnixListener::bind(&running.upstream).unwrap();
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (io, _) = listener.accept().await.unwrap();
            let seen = Arc::clone(&seen);
            connections.spawn(async move {
                let mut connection = h2::server::handshake(io).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(behave(request, respond, Arc::clone(&seen)));
                }
            });
        }
    })
}

/// Does what the path says.
async fn behave(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, seen: Seen) {
    let path = request.uri().path().to_owned();
    seen.lock()
        .unwrap()
        .push((path.clone(), request.headers().clone()));
    let mut body = request.into_body();
    match path.as_str() {
        "/reset" => respond.send_reset(Reason::REFUSED_STREAM),
        "/trailers-only" => {
            let mut head = Response::new(());
            head.headers_mut()
                .insert("grpc-status", HeaderValue::from_static("5"));
            respond.send_response(head, true).unwrap();
        }
        "/half" => {
            let mut send = respond.send_response(Response::new(()), false).unwrap();
            send.send_data(framed(b"half").into(), false).unwrap();
            send.send_reset(Reason::ENHANCE_YOUR_CALM);
        }
        "/endless" => {
            let mut send = respond.send_response(Response::new(()), false).unwrap();
            let part = Bytes::from(vec![0; 1 << 20]);
            // Until nobody wants it.
            while send.send_data(part.clone(), false).is_ok() {
                send.reserve_capacity(part.len());
                let _ = std::future::poll_fn(|cx| send.poll_capacity(cx)).await;
            }
        }
        "/wait" => {
            let mut send = respond.send_response(Response::new(()), false).unwrap();
            let reason = std::future::poll_fn(|cx| send.poll_reset(cx)).await;
            let reason = format!("reset {:?}", reason.unwrap());
            seen.lock().unwrap().push((reason, HeaderMap::new()));
        }
        _ => {
            let mut head = Response::new(());
            head.headers_mut()
                .append("x-initial-bin", HeaderValue::from_static("AP8"));
            let mut send = respond.send_response(head, false).unwrap();
            while let Some(part) = body.data().await {
                let part = part.unwrap();
                body.flow_control().release_capacity(part.len()).unwrap();
                // h2 bears only a few frames with nothing in them on a connection.
                if !part.is_empty() {
                    send.send_data(part, false).unwrap();
                }
            }
            let mut trailers = HeaderMap::new();
            trailers.append("grpc-status", HeaderValue::from_static("0"));
            trailers.append("x-trailer", HeaderValue::from_static("a"));
            trailers.append("x-trailer", HeaderValue::from_static("b"));
            send.send_trailers(trailers).unwrap();
        }
    }
}

#[test]
fn everything_goes_through_but_the_identity() {
    let running = echoing().run(Limits::default());
    let seen = Seen::default();
    block_on(async {
        let _upstream = upstream(&running, &seen);
        let client = Client::unix(&running).await;
        let given = request_with(
            "/anything",
            &[
                ("x-recalld-identity", "somebody else"),
                ("x-sent-bin", "AP8"),
                ("grpc-timeout", "5S"),
                ("grpc-encoding", "br"),
            ],
        );
        let message = vec![7; 3_500_000];
        let answer = client.ask(given, framed(&message)).await;
        assert_eq!(answer.message(), message);
        assert_eq!(answer.headers["x-initial-bin"], "AP8");
        let values: Vec<_> = answer.trailers.get_all("x-trailer").iter().collect();
        assert_eq!(values, ["a", "b"]);
        // What the front answers does not.
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
    let seen = seen.lock().unwrap();
    let [(path, headers)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(path, "/anything");
    assert_eq!(headers["x-recalld-identity"], "unix");
    for (name, value) in [
        ("x-sent-bin", "AP8"),
        ("grpc-timeout", "5S"),
        ("grpc-encoding", "br"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ] {
        assert_eq!(headers[name], value);
    }
}

#[test]
fn statuses_and_resets_go_through_as_they_are() {
    let running = echoing().run(Limits::default());
    let seen = Seen::default();
    block_on(async {
        let _upstream = upstream(&running, &seen);
        let client = Client::unix(&running).await;
        let answer = client.call("/trailers-only", b"").await;
        assert_eq!((answer.code(), answer.reset), (Some(5), None));
        let answer = client.call("/reset", b"").await;
        assert_eq!(answer.reset, Some(Reason::REFUSED_STREAM));
        let answer = client.call("/half", b"").await;
        assert_eq!(answer.reset, Some(Reason::ENHANCE_YOUR_CALM));
        // And up.
        let (answer, mut send) = client.begin(request("/wait")).await;
        let _head = answer.await.unwrap();
        send.send_reset(Reason::CANCEL);
        while seen.lock().unwrap().last().unwrap().0 != "reset CANCEL" {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn who_reads_no_answers_holds_up_nobody_else() {
    let running = echoing().run(Limits::default());
    let seen = Seen::default();
    block_on(async {
        let _upstream = upstream(&running, &seen);
        let greedy = Client::unix(&running).await;
        let other = Client::unix(&running).await;
        let mut unread = Vec::new();
        // Far more than any window of a connection holds, each as far as its own window reaches.
        for _ in 0..400 {
            let (answer, _) = greedy.begin(request("/endless")).await;
            unread.push(answer);
            assert_eq!(other.call("/anything", b"x").await.message(), b"x");
        }
    });
}

#[test]
fn messages_go_both_ways_as_they_come() {
    let running = echoing().run(Limits::default());
    let seen = Seen::default();
    block_on(async {
        let _upstream = upstream(&running, &seen);
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request("/talk")).await;
        let mut body = answer.await.unwrap().into_body();
        for word in [&b"one"[..], b"two", b"three"] {
            send.send_data(framed(word).into(), false).unwrap();
            let answer = body.data().await.unwrap().unwrap();
            assert_eq!(answer, framed(word));
        }
        send.send_data(Bytes::new(), true).unwrap();
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    });
}

#[test]
fn a_server_that_is_not_there_is_unavailable_until_it_is() {
    let running = echoing().run(Limits::default());
    let seen = Seen::default();
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = client.call("/anything", b"x").await;
        assert_eq!(answer.code(), Some(UNAVAILABLE));
        for _ in 0..2 {
            let upstream = upstream(&running, &seen);
            // A connection that just broke may still be chosen once.
            while client.call("/anything", b"x").await.code() != Some(0) {
                tokio::task::yield_now().await;
            }
            upstream.abort();
            assert!(upstream.await.unwrap_err().is_cancelled());
            std::fs::remove_file(&running.upstream).unwrap();
            while client.call("/anything", b"x").await.code() != Some(UNAVAILABLE) {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
}
