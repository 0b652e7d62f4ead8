//! The front as its host sees it: made, given addresses, started, drained, ended.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout, timeout_at};

use crate::authority::Repaired;
use crate::connection::{self, Phase};
use crate::handler::{Lane, Methods};
use crate::limits::Limits;
use crate::shared::Shared;

/// Most threads that move bytes.
const MOST_WORKERS: usize = 4;
/// How long the last bytes may take to leave after the last request was answered.
const FLUSH: Duration = Duration::from_secs(1);
/// Pause when the process has no descriptors left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Identity of everybody who comes over a Unix socket: the socket's permissions say who that can be.
const UNIX_IDENTITY: &str = "unix";

/// Serves gRPC until it is stopped or dropped.
pub struct Front {
    handle: Handle,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bound, and not started yet.
    listeners: Vec<Listener>,
    /// Once it was started: says when all connections have ended.
    all_closed: Option<mpsc::Receiver<()>>,
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Front {
    /// Makes a front. What is not among `methods` goes to the grpcio server that listens, or will, at `upstream`.
    pub fn new(methods: Methods, upstream: PathBuf, limits: Limits) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.min(MOST_WORKERS))
            .thread_name("recalld-front")
            .enable_all()
            .build()?;
        let (phase, receiver) = watch::channel(Phase::Serving);
        let shared = Shared::new(methods, upstream, limits, receiver);
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            shared: Arc::new(shared),
            phase,
            state: Mutex::default(),
        })
    }

    /// Binds a Unix socket. Who comes before the start waits.
    pub fn listen_unix(&self, path: &Path) -> io::Result<()> {
        let _runtime = self.handle.enter();
        let listener = StdUnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let listener = Listener::Unix(UnixListener::from_std(listener)?);
        self.state().listeners.push(listener);
        Ok(())
    }

    /// Binds a TCP port, 0 for any, and answers which. Nobody can share it.
    pub fn listen_tcp(&self, host: IpAddr, port: u16) -> io::Result<u16> {
        let _runtime = self.handle.enter();
        let listener = std::net::TcpListener::bind((host, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = Listener::Tcp(TcpListener::from_std(listener)?);
        self.state().listeners.push(listener);
        Ok(port)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to answer.
    pub fn start(&self) {
        let (connected, all_closed) = mpsc::channel(1);
        let mut state = self.state();
        state.all_closed = Some(all_closed);
        for listener in state.listeners.drain(..) {
            let (shared, connected) = (Arc::clone(&self.shared), connected.clone());
            self.handle.spawn(accept_all(listener, shared, connected));
        }
    }

    /// Takes no more connections and requests; those in hand go on. Returns at once.
    pub fn drain(&self) {
        self.state().listeners.clear();
        self.phase.send_if_modified(|phase| {
            let was_serving = *phase == Phase::Serving;
            if was_serving {
                *phase = Phase::Draining;
            }
            was_serving
        });
    }

    /// Drains for at most so long, then ends everything. False when a request was cut off.
    ///
    /// A handler whose caller has gone is not waited for, unless it is of `lane`.
    pub fn stop(&self, drain: Duration, lane: Option<&Lane>) -> bool {
        self.drain();
        let Some(mut all_closed) = self.state().all_closed.take() else {
            return true;
        };
        let deadline = Instant::now() + drain;
        self.handle.block_on(async {
            let answered = async {
                self.shared.requests.wait_until_empty().await;
                if let Some(lane) = lane {
                    lane.wait_until_empty().await;
                }
            };
            let drained = timeout_at(deadline.into(), answered).await.is_ok();
            if drained {
                let _ = timeout(FLUSH, all_closed.recv()).await;
            }
            self.phase.send_replace(Phase::Ended);
            let _ = timeout(FLUSH, all_closed.recv()).await;
            drained
        })
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Ended);
        if let Some(runtime) = self.runtime.take() {
            // Handlers run in threads of their own, so that nothing here can keep it waiting.
            runtime.shutdown_background();
        }
    }
}

/// Held by everything that may still write to a connection.
type Connected = mpsc::Sender<()>;

async fn accept_all(listener: Listener, shared: Arc<Shared>, connected: Connected) {
    let mut phase = shared.phase.clone();
    let mut failed_before = false;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving) => return,
            accepted = accept(&listener, &shared, &connected) => accepted,
        };
        let Err(error) = accepted else {
            failed_before = false;
            continue;
        };
        if !failed_before {
            tracing::warn!(%error, "connections cannot be accepted");
            failed_before = true;
        }
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn accept(
    listener: &Listener,
    shared: &Arc<Shared>,
    connected: &Connected,
) -> io::Result<()> {
    match listener {
        Listener::Unix(listener) => {
            let (io, _) = listener.accept().await?;
            serve(shared, UNIX_IDENTITY.into(), Repaired::new(io), connected);
        }
        Listener::Tcp(listener) => {
            let (io, peer) = listener.accept().await?;
            // Refused by a peer that has gone again, which is found soon.
            let _ = io.set_nodelay(true);
            serve(shared, identity_of(peer).into(), io, connected);
        }
    }
    Ok(())
}

fn serve<I>(shared: &Arc<Shared>, identity: Arc<str>, io: I, connected: &Connected)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Closed at once when there are too many.
    let Some(place) = shared.connections.try_take() else {
        return;
    };
    let (shared, connected) = (Arc::clone(shared), connected.clone());
    tokio::spawn(async move {
        connection::serve(shared, identity, io).await;
        drop((place, connected));
    });
}

/// A peer as gRPC writes it.
fn identity_of(peer: SocketAddr) -> String {
    match peer {
        SocketAddr::V4(peer) => format!("ipv4:{peer}"),
        SocketAddr::V6(peer) => format!("ipv6:%5B{}%5D:{}", peer.ip(), peer.port()),
    }
}
