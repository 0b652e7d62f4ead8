//! What goes back to the caller of one request: messages within the room that it makes, then trailers.
//!
//! An answer is handed to h2 only as far as the caller's windows reach, so that what waits for a slow reader is one
//! message and not more, and a reader that stands still is given up after a while.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use tokio::time::timeout;

use crate::metadata::GRPC;

/// Nobody waits for the answer any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl From<h2::Error> for Gone {
    fn from(_: h2::Error) -> Self {
        Self
    }
}

#[derive(Debug)]
pub(crate) struct Responder {
    head: SendResponse<Bytes>,
    /// Once the head was sent.
    body: Option<SendStream<Bytes>>,
    stall: Duration,
}

impl Responder {
    pub(crate) fn new(head: SendResponse<Bytes>, stall: Duration) -> Self {
        Self {
            head,
            body: None,
            stall,
        }
    }

    /// Waits until the caller gives up, with its reason. May be dropped and asked again.
    pub(crate) async fn reset(&mut self) -> Reason {
        let reset = poll_fn(|cx| match &mut self.body {
            Some(body) => body.poll_reset(cx),
            None => self.head.poll_reset(cx),
        });
        reset.await.unwrap_or(Reason::CANCEL)
    }

    /// Ends the stream without an answer.
    pub(crate) fn send_reset(&mut self, reason: Reason) {
        match &mut self.body {
            Some(body) => body.send_reset(reason),
            None => self.head.send_reset(reason),
        }
    }

    /// Sends a head of somebody else's.
    pub(crate) fn send_head(&mut self, head: Response<()>, is_end: bool) -> Result<(), Gone> {
        self.body = Some(self.head.send_response(head, is_end)?);
        Ok(())
    }

    /// Sends bytes as the caller makes room for them.
    pub(crate) async fn send(&mut self, bytes: Bytes) -> Result<(), Gone> {
        if self.body.is_none() {
            self.send_head(grpc_head(HeaderMap::new()), false)?;
        }
        let body = self.body.as_mut().ok_or(Gone)?;
        send_all(body, bytes, self.stall).await
    }

    /// Ends the stream with trailers, which are the head when nothing was sent.
    pub(crate) fn finish(mut self, trailers: HeaderMap) {
        // Fails only when nobody waits any more.
        let _ = match &mut self.body {
            Some(body) => body.send_trailers(trailers),
            None => {
                let head = grpc_head(trailers);
                self.head.send_response(head, true).map(|_| ())
            }
        };
    }
}

fn grpc_head(mut headers: HeaderMap) -> Response<()> {
    headers.insert(CONTENT_TYPE, GRPC);
    let mut head = Response::new(());
    *head.headers_mut() = headers;
    head
}

/// Sends bytes as far as the peer makes room for them, waiting `stall` at most for the next room.
pub(crate) async fn send_all(
    body: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    stall: Duration,
) -> Result<(), Gone> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len());
        if body.capacity() == 0 {
            let room = poll_fn(|cx| body.poll_capacity(cx));
            match timeout(stall, room).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => return Err(Gone),
                Err(_) => {
                    body.send_reset(Reason::CANCEL);
                    return Err(Gone);
                }
            }
        }
        let room = body.capacity().min(bytes.len());
        if room > 0 {
            body.send_data(bytes.split_to(room), false)?;
        }
    }
    Ok(())
}
