//! One request on a connection: its words are read, and it goes to a handler of ours or through to grpcio.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::header::{ALLOW, TE};
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode};
use tokio::time::{sleep_until, timeout};

use crate::connection::{Peer, Phase};
use crate::handler::{Call, Method, Shape, Status, code};
use crate::limits::{Held, Place};
use crate::message::{Message, Messages, Unanswerable, framed};
use crate::responder::Responder;
use crate::shared::Shared;
use crate::{metadata, pass, pipelined};

/// What is known of a request before its messages.
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) peer: Arc<Peer>,
    pub(crate) request_id: HeaderValue,
    pub(crate) deadline: Option<Instant>,
}

/// Answers one request.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    if let Some(refusal) = refusal_of_http(request.method(), request.headers()) {
        // Fails only when nobody waits for it.
        let _ = respond.send_response(refusal, true);
        return;
    }
    let place = place(&shared, request.headers());
    // After the place was asked for: a request with a place is one that the drain waits for.
    if *shared.phase.borrow() != Phase::Serving {
        // Nothing was done: a client tries it elsewhere.
        return respond.send_reset(Reason::REFUSED_STREAM);
    }
    let responder = Responder::new(respond, shared.limits.stall);
    let _place = match place {
        Ok(place) => place,
        Err(status) => return responder.finish(metadata::failed(&status, None)),
    };
    let Some(method) = shared.methods.get(request.uri().path()) else {
        return pass::through(&peer, request, responder).await;
    };
    let (parts, body) = request.into_parts();
    let request_id = metadata::request_id(&parts.headers);
    let (timeout, encoding) = match read_words(&parts.headers) {
        Ok(words) => words,
        Err(status) => return responder.finish(metadata::failed(&status, Some(request_id))),
    };
    let head = Arc::new(Head {
        method: parts.uri.path().to_owned(),
        peer,
        request_id,
        // A time that no clock reaches is none.
        deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
    });
    let messages = Messages::new(body, encoding, shared.limits.message_bytes, &shared.budget);
    match method.shape {
        Shape::Unary => unary(&shared, method, head, messages, responder).await,
        Shape::Pipelined => pipelined::answer(&shared, method, head, messages, responder).await,
    }
}

/// Takes a request in, or says why not.
fn place(shared: &Shared, headers: &HeaderMap) -> Result<Place, Status> {
    let refused = |message| Err(Status::of_protocol(code::RESOURCE_EXHAUSTED, message));
    let (size, most) = (metadata::size(headers), shared.limits.metadata_bytes);
    if size > most {
        return refused(format!("metadata of {size} bytes is larger than {most}"));
    }
    let message = "the sidecar has more requests in hand than it takes; nothing was done";
    let place = shared.requests.try_take();
    place.map_or_else(|| refused(message.to_owned()), Ok)
}

/// The answer to what is HTTP but not gRPC.
fn refusal_of_http(method: &HttpMethod, headers: &HeaderMap) -> Option<Response<()>> {
    let mut refusal = Response::new(());
    if method != HttpMethod::POST {
        *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let headers = refusal.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    } else if !metadata::is_grpc(headers) {
        *refusal.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    } else {
        return None;
    }
    Some(refusal)
}

/// The time that a call has, and how its messages are compressed.
type Words = (Option<Duration>, metadata::Encoding);

fn read_words(headers: &HeaderMap) -> Result<Words, Status> {
    if headers.get(TE).is_none_or(|te| te != "trailers") {
        // Somebody in between may drop the trailers, in which the status is.
        let message = "the request does not say `te: trailers`";
        return Err(Status::of_protocol(code::INTERNAL, message));
    }
    Ok((metadata::timeout(headers)?, metadata::encoding(headers)?))
}

async fn unary(
    shared: &Shared,
    method: &Method,
    head: Arc<Head>,
    mut messages: Messages,
    mut responder: Responder,
) {
    let request_id = head.request_id.clone();
    let deadline = head.deadline;
    let peer = Arc::clone(&head.peer);
    let answered = async {
        let message = within_stall(shared, only(&mut messages)).await?;
        let done = run(shared, method, head, message).await?;
        Ok(framed(&done, shared.limits.message_bytes)?)
    };
    let answered = tokio::select! {
        biased;
        _ = responder.reset() => return,
        answered = in_time(deadline, answered) => answered,
    };
    match answered {
        Ok(bytes) => {
            let _held = held_unread(shared, &peer, bytes.len());
            if responder.send(bytes).await.is_ok() {
                responder.finish(metadata::ok(request_id));
            }
        }
        Err(Unanswerable::Gone) => {}
        Err(Unanswerable::Refused(status)) => {
            responder.finish(metadata::failed(&status, Some(request_id)));
        }
    }
}

/// Counts an answer until it is dropped.
pub(crate) fn held_unread(shared: &Shared, peer: &Peer, bytes: usize) -> [Held; 2] {
    [peer.unread.hold(bytes), shared.budget.hold(bytes)]
}

/// The one message of a unary request.
async fn only(messages: &mut Messages) -> Result<Message, Unanswerable> {
    let wrong_count = |message: &str| Status::of_protocol(code::UNIMPLEMENTED, message);
    let message = messages.next().await?;
    let message =
        message.ok_or_else(|| wrong_count("the request has no message, but needs one"))?;
    if messages.next().await?.is_some() {
        return Err(wrong_count("the request has more than one message").into());
    }
    Ok(message)
}

async fn within_stall<T>(
    shared: &Shared,
    work: impl Future<Output = Result<T, Unanswerable>>,
) -> Result<T, Unanswerable> {
    let stalled = |_| Status::of_protocol(code::INTERNAL, "the request did not come to its end");
    timeout(shared.limits.stall, work).await.map_err(stalled)?
}

/// Does work until the deadline.
pub(crate) async fn in_time<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, Unanswerable>>,
) -> Result<T, Unanswerable> {
    let Some(deadline) = deadline else {
        return work.await;
    };
    tokio::select! {
        biased;
        done = work => done,
        () = sleep_until(deadline.into()) => {
            Err(Status::of_protocol(code::DEADLINE_EXCEEDED, "Deadline Exceeded").into())
        }
    }
}

/// Has a handler answer a message, in a thread of its lane. When this is dropped the handler goes on, and its answer is
/// thrown away.
pub(crate) async fn run(
    shared: &Shared,
    method: &Method,
    head: Arc<Head>,
    message: Message,
) -> Result<Vec<u8>, Status> {
    let arrived = Instant::now();
    let place = method.lane.place().await;
    // Its answer may be far larger than its request.
    head.peer.unread.check()?;
    shared.budget.check()?;
    let handler = Arc::clone(&method.handler);
    let work = move || {
        let plain = message.into_plain()?;
        let answer = handler.call(&Call {
            method: &head.method,
            identity: &head.peer.identity,
            request_id: head.request_id.to_str().unwrap_or_default(),
            request: &plain.bytes,
            deadline: head.deadline,
            arrived,
        });
        drop(place);
        answer
    };
    let panicked = || Status::of_protocol(code::INTERNAL, "the sidecar failed");
    method.lane.run(work).await.ok_or_else(panicked)?
}
