//! A stream whose messages are answered by one handler, several at a time and in any order.
//!
//! While as many messages are being answered as may be, no further one is read: the stream's window fills and the caller
//! waits. The caller's end is followed by the answers that are missing, and then by the trailers; so is the end of the
//! front, which tells the caller to come back.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use h2::Reason;
use tokio::task::{JoinError, JoinSet};

use crate::connection::Phase;
use crate::handler::{Method, Status, code};
use crate::message::{Message, Messages, Unanswerable, frame_onto};
use crate::metadata;
use crate::request::{Head, held_unread, in_time, run};
use crate::responder::Responder;
use crate::shared::Shared;

type Answers = JoinSet<Result<Vec<u8>, Status>>;
type Joined = Result<Result<Vec<u8>, Status>, JoinError>;

enum Event {
    Gone,
    Message(Message),
    HalfClosed,
    Draining,
    Answer(Joined),
}

/// Whether messages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    GoesOn,
    /// The caller has no more.
    HalfClosed,
    /// The front takes no more.
    Drained,
}

pub(crate) async fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    head: Arc<Head>,
    mut messages: Messages,
    mut responder: Responder,
) {
    let mut answers = Answers::new();
    let served = serve(
        shared,
        method,
        &head,
        &mut messages,
        &mut answers,
        &mut responder,
    );
    let request_id = head.request_id.clone();
    match in_time(head.deadline, served).await {
        Ok(()) => responder.finish(metadata::ok(request_id)),
        Err(Unanswerable::Gone) => responder.send_reset(Reason::CANCEL),
        Err(Unanswerable::Refused(status)) => {
            responder.finish(metadata::failed(&status, Some(request_id)));
        }
    }
}

async fn serve(
    shared: &Arc<Shared>,
    method: &Method,
    head: &Arc<Head>,
    messages: &mut Messages,
    answers: &mut Answers,
    responder: &mut Responder,
) -> Result<(), Unanswerable> {
    let mut phase = shared.phase.clone();
    let mut reading = Reading::GoesOn;
    while reading == Reading::GoesOn || !answers.is_empty() {
        let has_room = answers.len() < shared.limits.messages_a_stream;
        let event = tokio::select! {
            biased;
            _ = responder.reset() => Event::Gone,
            _ = phase.wait_for(|phase| *phase != Phase::Serving), if reading == Reading::GoesOn => {
                Event::Draining
            }
            Some(answer) = answers.join_next() => Event::Answer(answer),
            message = messages.next(), if has_room && reading == Reading::GoesOn => {
                message?.map_or(Event::HalfClosed, Event::Message)
            }
        };
        match event {
            Event::Gone => return Err(Unanswerable::Gone),
            Event::HalfClosed => reading = Reading::HalfClosed,
            Event::Draining => reading = Reading::Drained,
            Event::Message(message) => {
                let (shared, method, head) = (Arc::clone(shared), method.clone(), Arc::clone(head));
                answers.spawn(async move { run(&shared, &method, head, message).await });
            }
            Event::Answer(answer) => {
                let (bytes, failed) = all_ready(answer, answers, shared.limits.message_bytes);
                if !bytes.is_empty() {
                    let _held = held_unread(shared, &head.peer, bytes.len());
                    let sent = responder.send(bytes).await;
                    sent.map_err(|_| Unanswerable::Gone)?;
                }
                failed.map_or(Ok(()), Err)?;
            }
        }
    }
    if reading == Reading::Drained {
        let message = "the sidecar is ending; what was not answered was not looked at";
        return Err(Status::of_protocol(code::UNAVAILABLE, message).into());
    }
    Ok(())
}

/// Frames an answer and those that are ready behind it, as far as none has failed. Together: small frames cost both
/// sides more than their bytes.
fn all_ready(first: Joined, answers: &mut Answers, most: usize) -> (Bytes, Option<Status>) {
    let mut bytes = BytesMut::new();
    let mut next = Some(first);
    let mut failed = None;
    while let Some(answer) = next {
        let answer = answer.unwrap_or_else(|_| {
            let message = "the sidecar failed";
            Err(Status::of_protocol(code::INTERNAL, message))
        });
        let framed = answer.and_then(|answer| frame_onto(&mut bytes, &answer, most));
        failed = framed.err();
        next = if failed.is_none() {
            answers.try_join_next()
        } else {
            None
        };
    }
    (bytes.freeze(), failed)
}
