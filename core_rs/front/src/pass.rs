//! Passing a request through to grpcio, which listens on a socket that nobody else can reach.
//!
//! Everything goes through as it is, both ways, as it comes: metadata, messages, trailers, resets and the room that each
//! side makes. Only the address is replaced, and the metadata that says who asks, which is the front's to set. Deadlines
//! are kept by grpcio, which reads them itself.

use std::error::Error;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::uri::{self, Authority, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::connection::Peer;
use crate::handler::{Status, code};
use crate::metadata::{self, IDENTITY};
use crate::responder::{Gone, Responder, send_all};

/// What grpcio may send ahead on one stream, and on all together.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// The way to grpcio of one client's connection, made when it is needed. One for all would have one window: a client
/// that reads none of its answers would fill it, and nobody else's could come.
#[derive(Debug)]
pub(crate) struct Upstream {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    requests: SendRequest<Bytes>,
    /// Ends when the connection is broken.
    driver: JoinHandle<()>,
}

impl Upstream {
    pub(crate) fn new(path: PathBuf) -> Self {
        let connection = Mutex::new(None);
        Self { path, connection }
    }

    async fn connect(&self) -> Result<SendRequest<Bytes>, Box<dyn Error + Send + Sync>> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &*slot
            && !connection.driver.is_finished()
        {
            return Ok(connection.requests.clone());
        }
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false);
        let socket = UnixStream::connect(&self.path).await?;
        let (requests, connection) = builder.handshake(socket).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to grpcio broke");
            }
        });
        *slot = Some(Connection {
            requests: requests.clone(),
            driver,
        });
        Ok(requests)
    }
}

/// Passes one request through and its answer back.
pub(crate) async fn through(peer: &Peer, request: Request<RecvStream>, mut responder: Responder) {
    let sent = async {
        let (head, body) = readdressed(request, &peer.identity)?;
        let mut upstream = peer.upstream.connect().await?.ready().await?;
        let (answer, upload) = upstream.send_request(head, body.is_end_stream())?;
        Ok::<_, Box<dyn Error + Send + Sync>>((body, upload, answer))
    };
    let (body, upload, answer) = match sent.await {
        Ok(sent) => sent,
        Err(error) => {
            tracing::warn!(%error, "a request could not be passed to grpcio");
            responder.finish(metadata::failed(&unavailable(), None));
            return;
        }
    };
    match pass(body, upload, answer, &mut responder).await {
        End::Whole(None) => {}
        End::Whole(Some(trailers)) => responder.finish(trailers),
        End::Reset(reason) => responder.send_reset(reason),
        End::Broken => responder.finish(metadata::failed(&unavailable(), None)),
    }
}

/// Passes messages both ways until the answer has ended; what is still going up then is reset.
async fn pass(
    body: RecvStream,
    upload: SendStream<Bytes>,
    answer: ResponseFuture,
    responder: &mut Responder,
) -> End {
    let mut up = pin!(pass_up(body, upload));
    let mut down = pin!(pass_down(answer, responder));
    let mut is_going_up = true;
    loop {
        tokio::select! {
            biased;
            end = &mut down => return end,
            () = &mut up, if is_going_up => is_going_up = false,
        }
    }
}

fn unavailable() -> Status {
    let message = "the part of the sidecar that answers this call is not there";
    Status::of_protocol(code::UNAVAILABLE, message)
}

/// The request as it goes up.
fn readdressed(
    request: Request<RecvStream>,
    identity: &str,
) -> Result<(Request<()>, RecvStream), http::Error> {
    let (mut parts, body) = request.into_parts();
    let mut uri = uri::Parts::default();
    uri.scheme = Some(Scheme::HTTP);
    uri.authority = Some(Authority::from_static("localhost"));
    uri.path_and_query = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from_parts(uri)?;
    let identity = HeaderValue::try_from(identity)?;
    parts.headers.insert(IDENTITY, identity);
    Ok((Request::from_parts(parts, ()), body))
}

/// Passes the caller's messages up. Whether grpcio reads them is its business; the windows bound what waits.
async fn pass_up(mut body: RecvStream, mut upload: SendStream<Bytes>) {
    while let Some(piece) = poll_fn(|cx| body.poll_data(cx)).await {
        let Ok(piece) = piece else {
            upload.send_reset(Reason::CANCEL);
            return;
        };
        let length = piece.len();
        if send_all(&mut upload, piece, Duration::MAX).await.is_err() {
            return;
        }
        let _ = body.flow_control().release_capacity(length);
    }
    // Fails when grpcio has answered already and reads no more.
    let _ = upload.send_data(Bytes::new(), true);
}

/// How an answer ended.
enum End {
    /// As it should, with the trailers if they are still to be sent.
    Whole(Option<HeaderMap>),
    /// It was reset, by either side.
    Reset(Reason),
    /// The connection to grpcio broke before anything was sent.
    Broken,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Reset(Reason::CANCEL)
    }
}

async fn pass_down(answer: ResponseFuture, responder: &mut Responder) -> End {
    let answer = tokio::select! {
        biased;
        reason = responder.reset() => return End::Reset(reason),
        answer = answer => answer,
    };
    let (head, body) = match answer {
        Ok(answer) => answer.into_parts(),
        Err(error) if error.is_reset() => return end_of(&error),
        Err(_) => return End::Broken,
    };
    let head = Response::from_parts(head, ());
    pass_answer(head, body, responder)
        .await
        .unwrap_or_else(End::from)
}

async fn pass_answer(
    head: Response<()>,
    mut body: RecvStream,
    responder: &mut Responder,
) -> Result<End, Gone> {
    let is_end = body.is_end_stream();
    responder.send_head(head, is_end)?;
    if is_end {
        return Ok(End::Whole(None));
    }
    loop {
        let piece = tokio::select! {
            biased;
            reason = responder.reset() => return Ok(End::Reset(reason)),
            piece = poll_fn(|cx| body.poll_data(cx)) => piece,
        };
        match piece {
            Some(Ok(piece)) => {
                let length = piece.len();
                responder.send(piece).await?;
                let _ = body.flow_control().release_capacity(length);
            }
            Some(Err(error)) => return Ok(end_of(&error)),
            None => break,
        }
    }
    Ok(match poll_fn(|cx| body.poll_trailers(cx)).await {
        Ok(trailers) => End::Whole(Some(trailers.unwrap_or_default())),
        Err(error) => end_of(&error),
    })
}

fn end_of(error: &h2::Error) -> End {
    End::Reset(error.reason().unwrap_or(Reason::INTERNAL_ERROR))
}
