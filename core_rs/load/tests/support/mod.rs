//! A gRPC server that behaves as a test wants, on a thread of its own.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use recalld_load::{Address, Arrival, Call, Plan};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};

/// What a server has seen.
#[derive(Default)]
pub struct Seen {
    pub calls: AtomicU64,
    pub connections: AtomicU64,
    pub most_at_once: AtomicU64,
    at_once: AtomicU64,
    pub methods: Mutex<BTreeMap<String, Vec<Vec<u8>>>>,
}

impl Seen {
    fn record(&self, method: &str, body: Vec<u8>) {
        let mut methods = self.methods.lock().unwrap();
        methods.entry(method.to_owned()).or_default().push(body);
    }
}

/// How one call ends, once its future is ready: a gRPC status.
pub type Ending = Pin<Box<dyn Future<Output = End>>>;

pub enum End {
    /// A message and a status in the trailers.
    Answer(u16),
    /// A status alone, in the first headers.
    Refusal(u16, &'static str),
    /// The whole connection is dropped.
    Hangup,
}

/// What decides about a call, by its number.
pub trait Behaviour: Fn(u64) -> Ending + Send + Clone + 'static {}
impl<F: Fn(u64) -> Ending + Send + Clone + 'static> Behaviour for F {}

pub fn at_once(end: End) -> Ending {
    Box::pin(async { end })
}

/// Answers at once, but for one time in which nothing is answered: from the call of this number on, for so long.
pub fn stalling(from: u64, length: Duration) -> impl Behaviour {
    let until: Arc<Mutex<Option<Instant>>> = Arc::default();
    move |number| {
        let mut until = until.lock().unwrap();
        if number >= from {
            until.get_or_insert_with(|| Instant::now() + length);
        }
        let until = *until;
        Box::pin(async move {
            if let Some(until) = until {
                tokio::time::sleep_until(until.into()).await;
            }
            End::Answer(0)
        })
    }
}

pub struct Server {
    pub address: Address,
    pub seen: Arc<Seen>,
    _folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Serves on a Unix socket.
    pub fn unix(behaviour: impl Behaviour) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self::serving(folder, Address::Unix(path), behaviour, |work| async move {
            let listener = UnixListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                work.connection(stream);
            }
        })
    }

    /// Serves on a port of the loopback.
    pub fn tcp(behaviour: impl Behaviour) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let folder = tempfile::tempdir().unwrap();
        Self::serving(folder, address, behaviour, |work| async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                work.connection(stream);
            }
        })
    }

    fn serving<B: Behaviour, A: Future<Output = ()>>(
        folder: TempDir,
        address: Address,
        behaviour: B,
        accept: impl FnOnce(Work<B>) -> A + Send + 'static,
    ) -> Self {
        let seen: Arc<Seen> = Arc::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let work = Work {
            seen: Arc::clone(&seen),
            behaviour,
        };
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            LocalSet::new().block_on(&runtime, async move {
                tokio::select! {
                    () = accept(work) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            seen,
            _folder: folder,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn calls(&self) -> u64 {
        self.seen.calls.load(Ordering::SeqCst)
    }

    /// A short plan that calls it.
    pub fn plan(&self, arrival: Arrival) -> Plan {
        Plan {
            address: self.address.clone(),
            calls: vec![Call::new("/test.Service/Method", [b"request"], 1.0)],
            arrival,
            warmup: Duration::ZERO,
            duration: Duration::from_millis(500),
            connections: 1,
            timeout: Duration::from_secs(30),
            max_in_flight: 1_000,
            seed: 1,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join();
        // A panic here would hide the one of the test.
        assert!(ended.is_ok() || thread::panicking());
    }
}

#[derive(Clone)]
struct Work<B> {
    seen: Arc<Seen>,
    behaviour: B,
}

impl<B: Behaviour> Work<B> {
    fn connection(
        &self,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
    ) {
        self.seen.connections.fetch_add(1, Ordering::SeqCst);
        let work = self.clone();
        let (sender, hangup) = oneshot::channel::<AbortHandle>();
        let task = tokio::task::spawn_local(async move {
            let this = hangup.await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::task::spawn_local(work.clone().call(request, respond, this.clone()));
            }
        });
        sender.send(task.abort_handle()).unwrap();
    }

    async fn call(
        self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        connection: AbortHandle,
    ) {
        let seen = &self.seen;
        let number = seen.calls.fetch_add(1, Ordering::SeqCst);
        let now = seen.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most_at_once.fetch_max(now, Ordering::SeqCst);
        let ending = (self.behaviour)(number);
        let (head, mut stream) = request.into_parts();
        let mut body = Vec::new();
        while let Some(Ok(data)) = stream.data().await {
            stream.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        seen.record(head.uri.path(), body);
        let end = tokio::select! {
            end = ending => end,
            // The client gave up.
            _ = std::future::poll_fn(|context| respond.poll_reset(context)) => {
                seen.at_once.fetch_sub(1, Ordering::SeqCst);
                return;
            }
        };
        seen.at_once.fetch_sub(1, Ordering::SeqCst);
        let mut status = HeaderMap::new();
        match end {
            End::Hangup => connection.abort(),
            End::Refusal(code, message) => {
                let answer = Response::builder()
                    .header("grpc-status", code)
                    .header("grpc-message", message)
                    .body(())
                    .unwrap();
                let _ = respond.send_response(answer, true);
            }
            End::Answer(code) => {
                if let Ok(mut body) = respond.send_response(Response::new(()), false) {
                    status.insert("grpc-status", code.into());
                    let _ = body.send_data(Bytes::from_static(b"\0\0\0\0\0"), false);
                    let _ = body.send_trailers(status);
                }
            }
        }
    }
}
