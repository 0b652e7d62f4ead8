//! The calls: one line from the bytes of a request to the bytes of an answer.

use std::time::Instant;

use prost::Message;
use recalld_counters::Counters;
use recalld_engine::error::EngineError;
use recalld_engine::{BatchFound, Engine};
use recalld_proto::v1::{
    BatchSearchRequest, BatchSearchResponse, BriefRequest, CountTokensRequest, CountTokensResponse,
    DeleteRequest, ErrorReason, GetRequest, SearchRequest, SearchResponse, SearchStreamRequest,
    SearchStreamResponse, WhyNotRequest, WriteRequest,
};

use crate::convert;
use crate::error::{Code, Failure};
use crate::limits;
use crate::metrics::Timer;
use crate::service::Service;
use crate::validate::{self, Context};

/// A method that [`Service::dispatch`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Writes memories.
    Write,
    /// Finds memories.
    Search,
    /// Answers many searches.
    BatchSearch,
    /// Answers one search of a stream.
    SearchStream,
    /// Fetches memories.
    Get,
    /// Deletes memories.
    Delete,
    /// Packs memories into a text.
    Brief,
    /// Says why a memory is or is not found.
    WhyNot,
    /// Counts tokens.
    CountTokens,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Write,
        Self::Search,
        Self::BatchSearch,
        Self::SearchStream,
        Self::Get,
        Self::Delete,
        Self::Brief,
        Self::WhyNot,
        Self::CountTokens,
    ];

    /// Full name, as it stands in the path of a call.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "/recalld.v1.MemoryService/Write",
            Self::Search => "/recalld.v1.MemoryService/Search",
            Self::BatchSearch => "/recalld.v1.MemoryService/BatchSearch",
            Self::SearchStream => "/recalld.v1.MemoryService/SearchStream",
            Self::Get => "/recalld.v1.MemoryService/Get",
            Self::Delete => "/recalld.v1.MemoryService/Delete",
            Self::Brief => "/recalld.v1.MemoryService/Brief",
            Self::WhyNot => "/recalld.v1.MemoryService/WhyNot",
            Self::CountTokens => "/recalld.v1.MemoryService/CountTokens",
        }
    }

    /// Whether its calls are streams: each message of the caller's is dispatched by itself, and its answer is a message
    /// of the stream that comes back.
    pub fn is_stream(self) -> bool {
        self.unary().is_none()
    }

    /// What answers its calls; none for streams.
    fn unary(self) -> Option<Unary> {
        let unary: Unary = match self {
            Self::Write => |call| call.write(),
            Self::Search => |call| call.search(),
            Self::BatchSearch => |call| call.batch_search(),
            Self::SearchStream => return None,
            Self::Get => |call| call.get(),
            Self::Delete => |call| call.delete(),
            Self::Brief => |call| call.brief(),
            Self::WhyNot => |call| call.why_not(),
            Self::CountTokens => |call| call.count_tokens(),
        };
        Some(unary)
    }

    /// Whether its calls change what is stored.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Delete)
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// From a call to the bytes of its answer.
type Unary = fn(&Call<'_>) -> Result<Vec<u8>, Failure>;

/// Who asks, and until when.
#[derive(Clone, Copy)]
struct Hand<'a> {
    identity: &'a str,
    deadline: Option<Instant>,
    timer: &'a Timer<'a>,
}

/// One call in hand.
struct Call<'a> {
    engine: &'a Engine,
    counters: &'a Counters,
    identity: &'a str,
    request: &'a [u8],
    deadline: Option<Instant>,
    timer: &'a Timer<'a>,
}

impl Service {
    /// Answers one call: the serialised request in, the serialised answer out. Blocks.
    ///
    /// `method` is a full name of [`Method`], `identity` says who asks, for the journal. Unknown methods are not
    /// counted in the metrics, since their names are the caller's.
    pub fn dispatch(
        &self,
        method: &str,
        identity: &str,
        request: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>, Failure> {
        let Some(method) = Method::of_name(method) else {
            let message = format!("{method} is not a method of this server");
            return Err(Failure::new(ErrorReason::UnknownMethod, message));
        };
        let timer = self.metrics.start(method);
        let hand = Hand {
            identity,
            deadline,
            timer: &timer,
        };
        let (result, code) = match method.unary() {
            Some(unary) => {
                let answer = self.admitted(request, hand, unary);
                let code = answer.as_ref().map_or_else(Failure::code, |_| Code::Ok);
                (answer, code)
            }
            None => self.stream_message(request, hand),
        };
        timer.end(code);
        result
    }

    /// Answers one search of a stream. Only what is no message of the stream fails; any other error is an answer, and
    /// counted by its code.
    fn stream_message(&self, request: &[u8], hand: Hand<'_>) -> (Result<Vec<u8>, Failure>, Code) {
        let SearchStreamRequest { tag, search } = match decode_small("SearchStreamRequest", request)
        {
            Ok(message) => message,
            Err(failure) => {
                let code = failure.code();
                return (Err(failure), code);
            }
        };
        let search = search.unwrap_or_default();
        let answer = self.admitted(request, hand, |call| call.find(search));
        let code = answer.as_ref().map_or_else(Failure::code, |_| Code::Ok);
        let result = Some(convert::result(answer));
        (
            Ok(SearchStreamResponse { tag, result }.encode_to_vec()),
            code,
        )
    }

    fn admitted<T>(
        &self,
        request: &[u8],
        hand: Hand<'_>,
        answer: impl FnOnce(&Call<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _admitted = self.admission.enter()?;
        in_time(hand.deadline)?;
        let engine = self.engine()?;
        answer(&Call {
            engine: &engine,
            counters: &self.counters,
            identity: hand.identity,
            request,
            deadline: hand.deadline,
            timer: hand.timer,
        })
    }
}

impl Call<'_> {
    fn write(&self) -> Result<Vec<u8>, Failure> {
        validate::item_count(self.request)?;
        let request: WriteRequest = decode("WriteRequest", self.request)?;
        let write = validate::write(request, self.identity, self.context())?;
        let answer = self.engine.write(write, self.deadline)?;
        Ok(convert::written(&answer).encode_to_vec())
    }

    fn search(&self) -> Result<Vec<u8>, Failure> {
        let request = decode_small("SearchRequest", self.request)?;
        Ok(self.find(request)?.encode_to_vec())
    }

    fn find(&self, request: SearchRequest) -> Result<SearchResponse, Failure> {
        let (namespace, query) = validate::search(request, self.context())?;
        let answer = self.engine.search(&namespace, &query, self.deadline)?;
        Ok(convert::found(answer, self.timer.elapsed()))
    }

    fn batch_search(&self) -> Result<Vec<u8>, Failure> {
        let request: BatchSearchRequest = decode_small("BatchSearchRequest", self.request)?;
        validate::batch_search(&request)?;
        let mut refused = Vec::with_capacity(request.searches.len());
        let mut searches = Vec::with_capacity(request.searches.len());
        for search in request.searches {
            match validate::search(search, self.context()) {
                Ok(search) => {
                    refused.push(None);
                    searches.push(search);
                }
                Err(failure) => refused.push(Some(failure)),
            }
        }
        let BatchFound { results, token } = self.engine.batch_search(&searches, self.deadline)?;
        let mut answers = results.into_iter();
        let results = refused.into_iter().map(|refused| match refused {
            Some(failure) => Err(failure),
            None => match answers.next() {
                Some(Ok(found)) => Ok(convert::found(found, self.timer.elapsed())),
                Some(Err(error)) => Err(error.into()),
                None => Err(Failure::internal()),
            },
        });
        let response = BatchSearchResponse {
            results: results.map(convert::result).collect(),
            token: token.to_string(),
            took: Some(convert::elapsed(self.timer.elapsed())),
        };
        Ok(response.encode_to_vec())
    }

    fn why_not(&self) -> Result<Vec<u8>, Failure> {
        let request: WhyNotRequest = decode_small("WhyNotRequest", self.request)?;
        let (namespace, query, target) = validate::why_not(request, self.context())?;
        let answer = self
            .engine
            .why_not(&namespace, &query, &target, self.deadline)?;
        Ok(convert::why_not(answer).encode_to_vec())
    }

    fn get(&self) -> Result<Vec<u8>, Failure> {
        let request: GetRequest = decode_small("GetRequest", self.request)?;
        let get = validate::get(request, self.context())?;
        let answer = self.engine.get(&get, self.deadline)?;
        Ok(convert::details(answer).encode_to_vec())
    }

    fn delete(&self) -> Result<Vec<u8>, Failure> {
        let request: DeleteRequest = decode_small("DeleteRequest", self.request)?;
        let delete = validate::delete(request, self.identity)?;
        let answer = self.engine.delete(delete, self.deadline)?;
        Ok(convert::deleted(answer).encode_to_vec())
    }

    fn brief(&self) -> Result<Vec<u8>, Failure> {
        let mut request: BriefRequest = decode_small("BriefRequest", self.request)?;
        let if_fingerprint = std::mem::take(&mut request.if_fingerprint);
        let brief = validate::brief(request, self.context())?;
        let answer = self.engine.brief(&brief, self.deadline)?;
        let counter = brief.counter.name();
        let response = convert::briefed(answer, counter, &if_fingerprint, self.timer.elapsed());
        Ok(response.encode_to_vec())
    }

    fn count_tokens(&self) -> Result<Vec<u8>, Failure> {
        let request: CountTokensRequest = decode("CountTokensRequest", self.request)?;
        let request = validate::count_tokens(request, self.context())?;
        let mut counts = Vec::with_capacity(request.texts.len());
        for text in &request.texts {
            in_time(self.deadline)?;
            counts.push(request.counter.count(text));
        }
        let total = counts.iter().map(|&count| u64::from(count)).sum();
        let encoding = request.counter.name().to_owned();
        Ok(CountTokensResponse {
            counts,
            total,
            encoding,
        }
        .encode_to_vec())
    }

    fn context(&self) -> Context<'_> {
        Context {
            counters: self.counters,
            dimensions: self.engine.dimensions(),
            now: self.engine.now(),
        }
    }
}

fn in_time(deadline: Option<Instant>) -> Result<(), Failure> {
    match deadline {
        Some(deadline) if deadline <= Instant::now() => Err(EngineError::DeadlineExceeded.into()),
        _ => Ok(()),
    }
}

/// Decodes a request that has no business being large: empty elements cost two bytes on the wire and hundreds in memory.
fn decode_small<M: Message + Default>(name: &str, bytes: &[u8]) -> Result<M, Failure> {
    if bytes.len() > limits::MAX_REQUEST_BYTES {
        let message = format!("a {name} has at most {} bytes", limits::MAX_REQUEST_BYTES);
        return Err(Failure::new(ErrorReason::MalformedRequest, message));
    }
    decode(name, bytes)
}

fn decode<M: Message + Default>(name: &str, bytes: &[u8]) -> Result<M, Failure> {
    M::decode(bytes).map_err(|error| {
        let message = format!("the request is not a {name}: {error}");
        Failure::new(ErrorReason::MalformedRequest, message)
    })
}
