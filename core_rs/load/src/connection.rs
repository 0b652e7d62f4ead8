//! One HTTP/2 connection, and a gRPC call on it as bytes.
//!
//! A connection that breaks stays broken, so that the calls planned for it are counted as the failures that they are.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::{Builder, SendRequest};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::error::LoadError;
use crate::plan::{Address, Plan};
use crate::report::OK;

/// gRPC's codes that come of HTTP/2 rather than of a server's answer.
const CANCELLED: u16 = 1;
const UNKNOWN: u16 = 2;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNAVAILABLE: u16 = 14;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Streams that may be opened before the server has said how many it takes.
const FIRST_STREAMS: usize = 100;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// How a call ended: gRPC's status code and, with one other than OK, a message.
pub(crate) type Outcome = (u16, String);

/// What is the same in all calls of a method.
pub(crate) struct Head {
    uri: Uri,
    headers: HeaderMap,
}

impl Head {
    pub(crate) fn new(method: &str, deadline: Duration) -> Result<Self, LoadError> {
        let wrong = |error: &dyn std::fmt::Display| LoadError::Plan(format!("{method:?}: {error}"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        // Milliseconds, of which gRPC allows eight digits; a day has as many.
        let milliseconds = deadline.as_millis().max(1);
        let deadline = HeaderValue::try_from(format!("{milliseconds}m"));
        headers.insert("grpc-timeout", deadline.map_err(|error| wrong(&error))?);
        Ok(Self {
            uri: format!("http://localhost{method}")
                .parse()
                .map_err(|error| wrong(&error))?,
            headers,
        })
    }

    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
}

impl Connection {
    /// Connects. What keeps the connection going is a task of the current `LocalSet`.
    pub(crate) async fn open(plan: &Plan) -> Result<Self, LoadError> {
        let opening = async {
            match &plan.address {
                Address::Unix(path) => Self::over(UnixStream::connect(path).await?).await,
                Address::Tcp(name) => {
                    let stream = TcpStream::connect(name).await?;
                    stream.set_nodelay(true)?;
                    Self::over(stream).await
                }
            }
        };
        let opened = timeout(CONNECT, opening).await;
        opened
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|source| LoadError::Connect {
                address: plan.address.to_string(),
                source,
            })
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> io::Result<Self> {
        let (sender, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(FIRST_STREAMS)
            .enable_push(false)
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        // How it ends is told to the calls that were under way.
        spawn_local(async move { drop(connection.await) });
        Ok(Self { sender })
    }

    /// Makes a call and waits for its end. Dropped before, it cancels the call.
    pub(crate) async fn call(&self, head: &Head, request: Bytes) -> Outcome {
        self.answer(head, request)
            .await
            .unwrap_or_else(|error| (code_of(&error), error.to_string()))
    }

    async fn answer(&self, head: &Head, request: Bytes) -> Result<Outcome, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut body) = sender.send_request(head.request(), false)?;
        body.send_data(request, true)?;
        let answer = answer.await?;
        let status = answer.status();
        if let Some(outcome) = outcome(answer.headers()) {
            return Ok(outcome);
        }
        let mut body = answer.into_body();
        while let Some(data) = body.data().await {
            body.flow_control().release_capacity(data?.len())?;
        }
        let trailers = body.trailers().await?;
        let told = trailers.as_ref().and_then(outcome);
        Ok(told.unwrap_or_else(|| {
            let code = match status {
                StatusCode::OK => UNKNOWN,
                _ => UNAVAILABLE,
            };
            (code, format!("HTTP status {status} and no gRPC status"))
        }))
    }
}

fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text(&STATUS)?.parse().unwrap_or(UNKNOWN);
    let message = match code {
        OK => String::new(),
        _ => text(&MESSAGE).unwrap_or_default().to_owned(),
    };
    Some((code, message))
}

/// As gRPC maps errors of HTTP/2.
fn code_of(error: &h2::Error) -> u16 {
    match error.reason() {
        Some(Reason::CANCEL) => CANCELLED,
        Some(Reason::ENHANCE_YOUR_CALM) => RESOURCE_EXHAUSTED,
        _ => UNAVAILABLE,
    }
}
