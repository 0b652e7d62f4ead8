//! Unary calls: what gRPC demands of a server, over real sockets.

use std::io::Write;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use h2::Reason;
use http::Method as HttpMethod;
use proptest::prelude::*;
use recalld_front::{Call, Limits, Status};
use tokio::net::TcpStream;

use crate::support::{
    Client, ECHO, Served, block_on, echo, echoing, framed, request, request_with,
};

const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const INTERNAL: u32 = 13;

#[test]
fn a_message_comes_back_with_an_id() {
    let running = echoing().run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = client.call(ECHO, b"\x00\xff").await;
        assert_eq!(answer.message(), b"\x00\xff");
        assert_eq!(answer.http, 200);
        assert_eq!(answer.headers["content-type"], "application/grpc");
        assert_eq!(answer.trailer("x-request-id").unwrap().len(), 16);
        let given = request_with(ECHO, &[("x-request-id", "mine")]);
        let answer = client.ask(given, framed(b"")).await;
        assert_eq!(answer.message(), b"");
        assert_eq!(answer.trailer("x-request-id"), Some("mine"));
    });
}

#[test]
fn a_handler_sees_who_asks_and_until_when() {
    type Seen = Mutex<Vec<(String, Option<Instant>)>>;
    let seen: Arc<Seen> = Arc::default();
    let saw = Arc::clone(&seen);
    let running = Served::new()
        .unary(ECHO, move |call: &Call<'_>| {
            let mut saw = saw.lock().unwrap();
            saw.push((call.identity.to_owned(), call.deadline));
            echo(call)
        })
        .run(Limits::default());
    let v4 = running.front.listen_tcp([127, 0, 0, 1].into(), 0).unwrap();
    let v6 = running.front.listen_tcp("::1".parse().unwrap(), 0).unwrap();
    running.front.start();
    block_on(async {
        let given = request_with(ECHO, &[("x-recalld-identity", "somebody else")]);
        let unix = Client::unix(&running).await;
        assert_eq!(unix.ask(given, framed(b"")).await.code(), Some(0));
        for (host, port) in [("127.0.0.1", v4), ("::1", v6)] {
            let stream = TcpStream::connect((host, port)).await.unwrap();
            let client = Client::over(stream).await;
            let timed = request_with(ECHO, &[("grpc-timeout", "1H")]);
            assert_eq!(client.ask(timed, framed(b"")).await.code(), Some(0));
        }
    });
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], ("unix".to_owned(), None));
    assert!(seen[1].0.starts_with("ipv4:127.0.0.1:"));
    assert!(seen[2].0.starts_with("ipv6:%5B::1%5D:"));
    assert!(seen[1].1.unwrap() > Instant::now() + Duration::from_secs(3000));
}

#[test]
fn a_failure_arrives_whole() {
    let status = Status {
        code: 9,
        message: "100 % \u{fc}\nend".to_owned(),
        details: vec![8, 9, 255],
    };
    let fails = status.clone();
    let running = Served::new()
        .unary(ECHO, move |_: &Call<'_>| Err(fails.clone()))
        .run(Limits::default());
    block_on(async {
        let answer = Client::unix(&running).await.call(ECHO, b"").await;
        assert_eq!((answer.http, answer.code()), (200, Some(9)));
        assert_eq!(answer.trailer("grpc-message"), Some("100 %25 %C3%BC%0Aend"));
        assert_eq!(answer.trailer("grpc-status-details-bin"), Some("CAn/"));
        assert!(answer.trailer("x-request-id").is_some());
        assert!(answer.messages.is_empty());
    });
}

#[test]
fn a_panic_ends_its_call_only() {
    let running = Served::new()
        .unary(ECHO, |call: &Call<'_>| {
            assert!(call.request.is_empty(), "a bug");
            echo(call)
        })
        .run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let answer = client.call(ECHO, b"x").await;
        assert_eq!(answer.code(), Some(INTERNAL));
        assert!(!answer.trailer("grpc-message").unwrap().contains("bug"));
        assert_eq!(client.call(ECHO, b"").await.message(), b"");
    });
}

/// A handler that waits until it is told to go on, and says when it has begun.
fn waiting() -> (Served, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (say_begun, begun) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (say_begun, wait) = (Mutex::new(say_begun), Mutex::new(wait));
    let served = Served::new().unary(ECHO, move |call: &Call<'_>| {
        let _ = say_begun.lock().unwrap().send(());
        let _ = wait.lock().unwrap().recv();
        echo(call)
    });
    (served, begun, go_on)
}

#[test]
fn a_deadline_ends_the_wait() {
    let (served, begun, go_on) = waiting();
    let running = served.run(Limits::default());
    block_on(async {
        let client = Client::unix(&running).await;
        let timed = request_with(ECHO, &[("grpc-timeout", "20m")]);
        let answer = client.ask(timed, framed(b"")).await;
        assert_eq!(answer.code(), Some(DEADLINE_EXCEEDED));
        // It had begun, and only now ends.
        begun.recv().unwrap();
        // While the request itself does not come, too.
        let timed = request_with(ECHO, &[("grpc-timeout", "20m")]);
        let (answer, _unsent) = client.begin(timed).await;
        let answer = crate::support::Answer::of(answer).await;
        assert_eq!(answer.code(), Some(DEADLINE_EXCEEDED));
    });
    drop(go_on);
}

#[test]
fn who_gives_up_frees_the_place() {
    let (served, begun, go_on) = waiting();
    let running = served.run(Limits {
        requests: 1,
        ..Limits::default()
    });
    block_on(async {
        let client = Client::unix(&running).await;
        let (answer, mut send) = client.begin(request(ECHO)).await;
        crate::support::send_body(&mut send, framed(b"").into()).await;
        tokio::task::spawn_blocking(move || begun.recv().unwrap())
            .await
            .unwrap();
        let refused = client.call(ECHO, b"").await;
        assert_eq!(refused.code(), Some(RESOURCE_EXHAUSTED));
        send.send_reset(Reason::CANCEL);
        drop(answer);
        drop(go_on);
        // The handler may still be at work: its caller's place is free all the same.
        while client.call(ECHO, b"x").await.code() != Some(0) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn what_is_not_grpc_is_refused() {
    let running = echoing().run(Limits::default());
    let status = |headers: &'static [(&str, &str)], body: &'static [u8]| {
        block_on(async {
            let client = Client::unix(&running).await;
            let answer = client.ask(request_with(ECHO, headers), body.to_vec()).await;
            // The front serves on.
            assert_eq!(client.call(ECHO, b"y").await.message(), b"y");
            (answer.http, answer.code())
        })
    };
    let whole = b"\0\0\0\0\x01x";
    assert_eq!(status(&[("content-type", "")], whole), (415, None));
    assert_eq!(
        status(&[("content-type", "application/json")], whole),
        (415, None)
    );
    assert_eq!(status(&[("te", "")], whole), (200, Some(INTERNAL)));
    for timeout in ["1", "S", "1x", "-1S", "123456789S"] {
        let answer = block_on(async {
            let client = Client::unix(&running).await;
            let request = request_with(ECHO, &[("grpc-timeout", timeout)]);
            client.ask(request, whole.to_vec()).await
        });
        assert_eq!(answer.code(), Some(INTERNAL), "{timeout}");
    }
    for (body, code) in [
        (&b""[..], UNIMPLEMENTED),
        (b"\0\0\0", INTERNAL),
        (b"\0\0\0\0\x02x", INTERNAL),
        (b"\x02\0\0\0\x01x", INTERNAL),
        (b"\x01\0\0\0\x01x", INTERNAL),
        (b"\0\0\0\0\x01x\0\0\0\0\x01y", UNIMPLEMENTED),
        (b"\0\0\0\0\x01xjunk", INTERNAL),
        (b"\0\xff\xff\xff\xff", RESOURCE_EXHAUSTED),
    ] {
        assert_eq!(status(&[], body), (200, Some(code)), "{body:?}");
    }
    block_on(async {
        let client = Client::unix(&running).await;
        let mut get = request(ECHO);
        *get.method_mut() = HttpMethod::GET;
        let answer = client.ask(get, Vec::new()).await;
        assert_eq!(answer.http, 405);
        assert_eq!(answer.headers["allow"], "POST");
    });
}

fn compressed(message: &[u8], encoding: &str) -> Vec<u8> {
    let bytes = if encoding == "gzip" {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(message).unwrap();
        encoder.finish().unwrap()
    } else {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(message).unwrap();
        encoder.finish().unwrap()
    };
    let mut framed = framed(&bytes);
    framed[0] = 1;
    framed
}

#[test]
fn compressed_requests() {
    let running = echoing().run(Limits {
        message_bytes: 1 << 16,
        ..Limits::default()
    });
    let text = b"a long text ".repeat(1000);
    block_on(async {
        let client = Client::unix(&running).await;
        for encoding in ["gzip", "deflate"] {
            let request = || request_with(ECHO, &[("grpc-encoding", encoding)]);
            let answer = client.ask(request(), compressed(&text, encoding)).await;
            assert_eq!(answer.message(), text);
            let plain = client.ask(request(), framed(b"plain")).await;
            assert_eq!(plain.message(), b"plain");
            let bomb = compressed(&vec![0; 1 << 24], encoding);
            assert!(bomb.len() < 1 << 16);
            let answer = client.ask(request(), bomb).await;
            assert_eq!(answer.code(), Some(RESOURCE_EXHAUSTED));
        }
        let unknown = request_with(ECHO, &[("grpc-encoding", "br")]);
        let answer = client.ask(unknown, framed(b"")).await;
        assert_eq!(answer.code(), Some(UNIMPLEMENTED));
        assert_eq!(
            answer.trailer("grpc-accept-encoding"),
            Some("identity,deflate,gzip")
        );
    });
}

#[test]
fn large_messages_and_their_limit() {
    let limits = Limits {
        message_bytes: 3 << 20,
        ..Limits::default()
    };
    let running = echoing().run(limits);
    block_on(async {
        let client = Client::unix(&running).await;
        let largest = vec![7; 3 << 20];
        assert_eq!(client.call(ECHO, &largest).await.message(), largest);
        let larger = vec![7; (3 << 20) + 1];
        let refused = client.call(ECHO, &larger).await;
        assert_eq!(refused.code(), Some(RESOURCE_EXHAUSTED));
        assert_eq!(client.call(ECHO, b"x").await.message(), b"x");
    });
    let wordy = Served::new()
        .unary(ECHO, |_: &Call<'_>| Ok(vec![0; (3 << 20) + 1]))
        .run(Limits {
            message_bytes: 3 << 20,
            ..Limits::default()
        });
    let refused = block_on(async { Client::unix(&wordy).await.call(ECHO, b"").await });
    assert_eq!(refused.code(), Some(RESOURCE_EXHAUSTED));
}

#[test]
fn all_requests_together_hold_so_many_bytes() {
    let limits = Limits {
        held_bytes: 1 << 20,
        ..Limits::default()
    };
    let running = echoing().run(limits);
    block_on(async {
        let client = Client::unix(&running).await;
        let message = vec![0; 700 << 10];
        // The greater part of one is held while its rest does not come.
        let (first, mut send) = client.begin(request(ECHO)).await;
        let mut body = bytes::Bytes::from(framed(&message));
        let rest = body.split_off(600 << 10);
        while !body.is_empty() {
            send.reserve_capacity(body.len());
            let room = std::future::poll_fn(|cx| send.poll_capacity(cx)).await;
            let room = room.unwrap().unwrap().min(body.len());
            send.send_data(body.split_to(room), false).unwrap();
        }
        while client.call(ECHO, &message).await.code() != Some(RESOURCE_EXHAUSTED) {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.call(ECHO, b"small").await.message(), b"small");
        crate::support::send_body(&mut send, rest).await;
        assert_eq!(crate::support::Answer::of(first).await.message(), message);
        assert_eq!(client.call(ECHO, &message).await.message(), message);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_split_of_the_body_is_the_same_call(
        message in prop::collection::vec(any::<u8>(), 0..2000),
        pieces in prop::collection::vec(1usize..300, 1..8),
    ) {
        let running = echoing().run(Limits::default());
        let answer = block_on(async {
            let client = Client::unix(&running).await;
            let (answer, mut send) = client.begin(request(ECHO)).await;
            let mut body = bytes::Bytes::from(framed(&message));
            for piece in pieces.iter().cycle() {
                let part = body.split_to((*piece).min(body.len()));
                send.send_data(part, body.is_empty()).unwrap();
                tokio::task::yield_now().await;
                if body.is_empty() {
                    break;
                }
            }
            crate::support::Answer::of(answer).await
        });
        prop_assert_eq!(answer.message(), &message[..]);
    }
}
