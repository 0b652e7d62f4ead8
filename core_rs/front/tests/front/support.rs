//! A front on real sockets with handlers of the test's own, and a client that says exactly what it is told.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use recalld_front::{Call, Front, Handler, Lane, Limits, Method, Methods, Shape, Status};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

/// Longest wait for something that must come.
pub const SECONDS: Duration = Duration::from_secs(30);

/// A front that serves, and where.
pub struct Running {
    pub front: Front,
    pub socket: PathBuf,
    pub upstream: PathBuf,
    _folder: TempDir,
}

/// Methods of a test.
pub struct Served(pub Methods);

impl Served {
    pub fn new() -> Self {
        Self(Methods::new())
    }

    pub fn with(mut self, name: &str, shape: Shape, handler: impl Handler) -> Self {
        let lane = Lane::new(64);
        let handler = Arc::new(handler);
        let method = Method {
            shape,
            handler,
            lane,
        };
        self.0.insert(name.to_owned(), method);
        self
    }

    pub fn unary(self, name: &str, handler: impl Handler) -> Self {
        self.with(name, Shape::Unary, handler)
    }

    pub fn run(self, limits: Limits) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let upstream = folder.path().join("upstream");
        let front = Front::new(self.0, upstream.clone(), limits).unwrap();
        let socket = folder.path().join("front");
        front.listen_unix(&socket).unwrap();
        front.start();
        Running {
            front,
            socket,
            upstream,
            _folder: folder,
        }
    }
}

/// The method that answers what it is asked.
pub const ECHO: &str = "/t.T/Echo";

#[expect(clippy::unnecessary_wraps, reason = "as handlers are")]
pub fn echo(call: &Call<'_>) -> Result<Vec<u8>, Status> {
    Ok(call.request.to_vec())
}

pub fn echoing() -> Served {
    Served::new().unary(ECHO, echo)
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(SECONDS, work).await.unwrap() })
}

/// One connection of a client.
pub struct Client {
    pub requests: SendRequest<Bytes>,
    /// Ends with the connection, with its error if there was one.
    pub ended: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    pub async fn unix(running: &Running) -> Self {
        Self::over(UnixStream::connect(&running.socket).await.unwrap()).await
    }

    pub async fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self::with(&h2::client::Builder::new(), io).await
    }

    pub async fn with(
        builder: &h2::client::Builder,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (requests, connection) = builder.handshake(io).await.unwrap();
        let ended = tokio::spawn(connection);
        Self { requests, ended }
    }

    /// Begins a request.
    pub async fn begin(&self, request: Request<()>) -> (ResponseFuture, SendStream<Bytes>) {
        let mut ready = self.requests.clone().ready().await.unwrap();
        ready.send_request(request, false).unwrap()
    }

    /// Sends a request with this body and waits for the whole answer.
    pub async fn ask(&self, request: Request<()>, body: Vec<u8>) -> Answer {
        let (answer, mut send) = self.begin(request).await;
        send_body(&mut send, body.into()).await;
        Answer::of(answer).await
    }

    /// Calls a method with one message.
    pub async fn call(&self, method: &str, message: &[u8]) -> Answer {
        self.ask(request(method), framed(message)).await
    }
}

/// Sends a body and its end as far as the server wants it.
pub async fn send_body(send: &mut SendStream<Bytes>, mut body: Bytes) {
    while !body.is_empty() {
        send.reserve_capacity(body.len());
        match poll_fn(|cx| send.poll_capacity(cx)).await {
            Some(Ok(room)) => {
                let part = body.split_to(room.min(body.len()));
                send.send_data(part, false).unwrap();
            }
            // The server has answered and reads no more.
            _ => return,
        }
    }
    let _ = send.send_data(Bytes::new(), true);
}

pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

pub fn request(method: &str) -> Request<()> {
    request_with(method, &[])
}

/// A request of gRPC with some headers more, or instead; an empty value leaves one out.
pub fn request_with(method: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::post(format!("http://localhost{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().remove(&name);
        if !value.is_empty() {
            request.headers_mut().append(name, value.parse().unwrap());
        }
    }
    request
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub http: u16,
    pub headers: HeaderMap,
    pub messages: Vec<Vec<u8>>,
    pub trailers: HeaderMap,
    /// Instead of an end.
    pub reset: Option<Reason>,
}

impl Answer {
    pub async fn of(answer: ResponseFuture) -> Self {
        let mut found = Self {
            http: 0,
            headers: HeaderMap::new(),
            messages: Vec::new(),
            trailers: HeaderMap::new(),
            reset: None,
        };
        match answer.await {
            Err(error) => found.reset = Some(error.reason().unwrap_or(Reason::INTERNAL_ERROR)),
            Ok(answer) => {
                let (parts, mut body) = answer.into_parts();
                found.http = parts.status.as_u16();
                found.headers = parts.headers;
                if let Err(error) = found.read(&mut body).await {
                    found.reset = Some(error.reason().unwrap_or(Reason::INTERNAL_ERROR));
                }
            }
        }
        found
    }

    async fn read(&mut self, body: &mut RecvStream) -> Result<(), h2::Error> {
        let mut bytes = Vec::new();
        while let Some(part) = body.data().await {
            let part = part?;
            body.flow_control().release_capacity(part.len())?;
            bytes.extend_from_slice(&part);
        }
        let mut rest = &bytes[..];
        while let Some((prefix, after)) = rest.split_first_chunk::<5>() {
            let length = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
            self.messages.push(after[..length].to_vec());
            rest = &after[length..];
        }
        assert!(rest.is_empty());
        let trailers = body.trailers().await?;
        self.trailers = trailers.unwrap_or_else(|| self.headers.clone());
        Ok(())
    }

    /// The one message of an answer that is OK.
    pub fn message(&self) -> &[u8] {
        assert_eq!(self.code(), Some(0), "{self:?}");
        let [message] = &self.messages[..] else {
            panic!("{self:?}");
        };
        message
    }

    pub fn code(&self) -> Option<u32> {
        self.trailer("grpc-status")?.parse().ok()
    }

    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name).map(|value| value.to_str().unwrap())
    }
}
