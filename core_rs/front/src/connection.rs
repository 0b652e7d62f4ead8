//! One connection: its handshake, its requests, the question whether the peer is alive, and its end.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::{Builder, Connection};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use crate::limits::{Budget, Limits};
use crate::pass::Upstream;
use crate::request;
use crate::shared::Shared;

/// What a caller may send ahead on one stream. Small: the socket is on this host, and the bytes are held here.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same of all streams of a connection.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// What the small frames that fit into that window may cost besides their bytes. h2's own bound is a sixteenth, which
/// a stream of many small messages reaches while it waits to be read.
const FRAME_BUDGET: usize = 8 << 20;
/// Metadata that is read although it is refused, so that the refusal can be one of gRPC: a multiple of the limit.
const METADATA_READ: usize = 4;
/// Streams that a peer may reset before they were looked at, and streams that it may make us reset.
const RESET_STREAMS: usize = 100;

/// Whether the front serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    /// Requests in hand go on, and no more are taken.
    Draining,
    /// Everything ends now.
    Ended,
}

/// Who is at the other end of a connection.
pub(crate) struct Peer {
    pub(crate) identity: Arc<str>,
    pub(crate) upstream: Upstream,
    /// Bytes of answers that it has made no room for.
    pub(crate) unread: Arc<Budget>,
}

impl Peer {
    fn new(identity: Arc<str>, shared: &Shared) -> Self {
        Self {
            identity,
            upstream: Upstream::new(shared.upstream.clone()),
            unread: Budget::new(shared.limits.unread_bytes_a_connection),
        }
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve<I>(shared: Arc<Shared>, identity: Arc<str>, io: I)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut phase = shared.phase.clone();
    let handshake = builder(&shared.limits).handshake::<_, Bytes>(io);
    let handshake = tokio::select! {
        biased;
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => return,
        handshake = timeout(shared.limits.handshake, handshake) => handshake,
    };
    let Ok(Ok(mut connection)) = handshake else {
        return;
    };
    let peer = Arc::new(Peer::new(identity, &shared));
    let pings = connection.ping_pong();
    tokio::select! {
        biased;
        _ = phase.wait_for(|phase| *phase == Phase::Ended) => {}
        () = accept_all(&shared, &peer, &mut connection) => {}
        () = answered_pings(pings, &shared.limits) => {}
    }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .data_frame_budget(FRAME_BUDGET)
        .max_concurrent_streams(limits.requests_a_connection)
        .max_header_list_size(
            u32::try_from(METADATA_READ * limits.metadata_bytes).unwrap_or(u32::MAX),
        )
        // Whoever is refused may have sent more already. What comes for a stream that h2 has forgotten is a fault,
        // and many of those end the connection.
        .max_concurrent_reset_streams(limits.requests_a_connection as usize)
        .max_pending_accept_reset_streams(RESET_STREAMS)
        .max_local_error_reset_streams(Some(RESET_STREAMS));
    builder
}

/// Takes requests until the connection ends.
async fn accept_all<I>(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    connection: &mut Connection<I, Bytes>,
) where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut phase = shared.phase.clone();
    let mut draining = false;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving), if !draining => {
                draining = true;
                connection.graceful_shutdown();
                continue;
            }
            accepted = poll_fn(|cx| connection.poll_accept(cx)) => accepted,
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        let (shared, peer) = (Arc::clone(shared), Arc::clone(peer));
        tokio::spawn(request::answer(shared, peer, request, respond));
    }
}

/// Asks the peer again and again whether it is alive. Returns when it does not say so.
async fn answered_pings(pings: Option<PingPong>, limits: &Limits) {
    let Some(mut pings) = pings else {
        return;
    };
    loop {
        sleep(limits.ping_every).await;
        let pong = timeout(limits.ping_timeout, pings.ping(Ping::opaque())).await;
        if !matches!(pong, Ok(Ok(_))) {
            return;
        }
    }
}
