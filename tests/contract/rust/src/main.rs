//! The calls of recalld as a program in Rust makes them, with tonic and what it generates from the proto files.
//!
//! It talks to each address that it is given, in a namespace of its own, and prints one JSON object with what it saw.

use std::error::Error;
use std::time::Duration;

use prost::Message;
use serde_json::{Map, Value, json};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use health::{HealthCheckRequest, health_client::HealthClient};
use recalld::memory_service_client::MemoryServiceClient;
use recalld::search_result::Result as Found;

mod health {
    tonic::include_proto!("grpc.health.v1");
}
#[allow(clippy::all, reason = "generated")]
mod recalld {
    tonic::include_proto!("recalld.v1");
}
mod status {
    tonic::include_proto!("google.rpc");
}

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut answers = Map::new();
    for (number, address) in std::env::args().skip(1).enumerate() {
        let segments = ["toolchains", "rust", &number.to_string()].map(str::to_owned);
        let namespace = recalld::Namespace {
            segments: segments.to_vec(),
        };
        answers.insert(address.clone(), talk(&address, namespace).await?);
    }
    println!("{}", Value::Object(answers));
    Ok(())
}

async fn connect(address: &str) -> Result<Channel, Box<dyn Error>> {
    let uri = match address.strip_prefix("unix:") {
        Some(path) => format!("unix://{path}"),
        None => format!("http://{address}"),
    };
    Ok(Endpoint::new(uri)?.timeout(LIMIT).connect().await?)
}

async fn talk(address: &str, namespace: recalld::Namespace) -> Result<Value, Box<dyn Error>> {
    let channel = connect(address).await?;
    let mut memory = MemoryServiceClient::new(channel.clone());
    let namespace = Some(namespace);

    let health = HealthClient::new(channel)
        .check(HealthCheckRequest {})
        .await?;

    let order = recalld::value::Kind::IntValue((1 << 53) + 1);
    let order = recalld::Value { kind: Some(order) };
    let items = vec![
        recalld::WriteItem {
            key: "seat".to_owned(),
            kind: "preference".to_owned(),
            content: "Alice prefers aisle seats on long flights.".to_owned(),
            metadata: [("order".to_owned(), order)].into(),
            ..Default::default()
        },
        recalld::WriteItem {
            key: "meal".to_owned(),
            content: "Alice eats no meat. \u{c9}t\u{e9} \u{4e2d}\u{6587} \u{1f680}".to_owned(),
            ..Default::default()
        },
    ];
    let request = recalld::WriteRequest {
        namespace: namespace.clone(),
        items,
        ..Default::default()
    };
    let written = memory.write(request).await?.into_inner();
    let outcomes = written
        .receipts
        .iter()
        .map(|receipt| receipt.outcome().as_str_name());

    let search = recalld::SearchRequest {
        namespace: namespace.clone(),
        query: "which seat does she like?".to_owned(),
        limit: Some(5),
        at_least_as_fresh: written.token.clone(),
        ..Default::default()
    };
    let found = memory.search(search).await?.into_inner();

    let request = recalld::GetRequest {
        namespace: namespace.clone(),
        keys: ["meal", "none", "seat"].map(str::to_owned).to_vec(),
        ..Default::default()
    };
    let details = memory.get(request).await?.into_inner();
    let order = match &details.memories[1].metadata["order"].kind {
        Some(recalld::value::Kind::IntValue(order)) => order.to_string(),
        other => return Err(format!("{other:?} is not the order").into()),
    };

    let request = recalld::BriefRequest {
        namespace: namespace.clone(),
        query: "book a flight".to_owned(),
        budget_tokens: Some(200),
        ..Default::default()
    };
    let brief = memory.brief(request).await?.into_inner();

    let (stream, failed) = stream(&mut memory, &namespace).await?;

    let wrong = recalld::SearchRequest {
        namespace,
        query: "x".to_owned(),
        limit: Some(0),
        ..Default::default()
    };
    let Err(error) = memory.search(wrong).await else {
        return Err("a wrong search was answered".into());
    };
    Ok(json!({
        "health": health.into_inner().status().as_str_name(),
        "outcomes": outcomes.collect::<Vec<_>>(),
        "hits": hits(&found),
        "content": details.memories[0].content,
        "order": order,
        "missing": details.missing_keys,
        "brief": brief.text,
        "tokens": brief.tokens,
        "stream": stream,
        "failed": failed,
        "error": failure(&error)?,
    }))
}

/// Asks three searches without waiting, the last of which is wrong.
async fn stream(
    memory: &mut MemoryServiceClient<Channel>,
    namespace: &Option<recalld::Namespace>,
) -> Result<(Value, Value), Box<dyn Error>> {
    let searches = [("seat", None), ("meal", None), ("x", Some(0))];
    let requests: Vec<_> = (0..)
        .zip(searches)
        .map(|(tag, (query, limit))| recalld::SearchStreamRequest {
            tag,
            search: Some(recalld::SearchRequest {
                namespace: namespace.clone(),
                query: query.to_owned(),
                limit,
                ..Default::default()
            }),
        })
        .collect();
    let request = Request::new(tokio_stream::iter(requests));
    let mut answers = memory.search_stream(request).await?.into_inner();
    let (mut answered, mut failed) = (Map::new(), Map::new());
    while let Some(answer) = answers.message().await? {
        let tag = answer.tag.to_string();
        match answer.result.and_then(|result| result.result) {
            Some(Found::Response(response)) => answered.insert(tag, hits(&response)),
            Some(Found::Failure(failure)) => failed.insert(tag, json!(failure.code.to_string())),
            None => return Err("an answer says nothing".into()),
        };
    }
    Ok((answered.into(), failed.into()))
}

fn hits(response: &recalld::SearchResponse) -> Value {
    let hit = |hit: &recalld::Signature| {
        json!({
            "id": hit.id,
            "key": hit.key,
            "summary": hit.summary,
            "content_tokens": hit.content_tokens,
        })
    };
    response.hits.iter().map(hit).collect()
}

fn failure(error: &Status) -> Result<Value, Box<dyn Error>> {
    let (mut reason, mut domain, mut fields) = (String::new(), String::new(), Vec::new());
    for detail in status::Status::decode(error.details())?.details {
        if detail.type_url.ends_with("/google.rpc.ErrorInfo") {
            let info = status::ErrorInfo::decode(detail.value.as_slice())?;
            (reason, domain) = (info.reason, info.domain);
        } else if detail.type_url.ends_with("/google.rpc.BadRequest") {
            let wrong = status::BadRequest::decode(detail.value.as_slice())?;
            fields = wrong
                .field_violations
                .into_iter()
                .map(|one| one.field)
                .collect();
        }
    }
    Ok(json!({"code": error.code() as i32, "reason": reason, "domain": domain, "fields": fields}))
}
