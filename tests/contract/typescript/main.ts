// The calls of recalld as a program in TypeScript makes them, from the proto files themselves, without generated code.
//
// It talks to each address that it is given, in a namespace of its own, and prints one JSON object with what it saw.

import * as grpc from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";

const PROTO = fileURLToPath(new URL("../../../../proto", import.meta.url));
const LIMIT_MS = 60_000;

// What proto-loader makes of messages: objects, with 64-bit integers and enums as text.
type Message = Record<string, any>;

const definition = await load(["recalld/v1/memory_service.proto"], {
  includeDirs: [PROTO],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
});
const MemoryService = (grpc.loadPackageDefinition(definition) as Message).recalld.v1.MemoryService;

// What gRPC itself defines, as far as it is read here.
const standard = protobuf.parse(`
  syntax = "proto3";
  message HealthCheckResponse {
    enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; }
    ServingStatus status = 1;
  }
  message Status { repeated Any details = 3; }
  message Any { string type_url = 1; bytes value = 2; }
  message ErrorInfo { string reason = 1; string domain = 2; }
  message BadRequest {
    message FieldViolation { string field = 1; }
    repeated FieldViolation field_violations = 1;
  }
`, { keepCase: true }).root;

function read(type: string, bytes: Uint8Array): Message {
  const message = standard.lookupType(type);
  return message.toObject(message.decode(bytes), { enums: String, defaults: true });
}

function deadline(): grpc.CallOptions {
  return { deadline: Date.now() + LIMIT_MS };
}

function unary(client: Message, method: string, request: Message): Promise<Message> {
  return new Promise((resolve, reject) =>
    client[method](request, new grpc.Metadata(), deadline(), (error: grpc.ServiceError | null, answer: Message) =>
      error ? reject(error) : resolve(answer),
    ),
  );
}

function hits(response: Message): Message[] {
  return response.hits.map((hit: Message) => ({
    id: hit.id,
    key: hit.key,
    summary: hit.summary,
    content_tokens: hit.content_tokens,
  }));
}

/** Asks three searches without waiting, the last of which is wrong. */
function stream(client: Message, namespace: Message): Promise<{ stream: Message; failed: Message }> {
  return new Promise((resolve, reject) => {
    const seen: { stream: Message; failed: Message } = { stream: {}, failed: {} };
    const call = client.SearchStream(new grpc.Metadata(), deadline());
    call.on("data", ({ tag, result }: Message) => {
      if (result.result === "failure") {
        seen.failed[tag] = String(result.failure.code);
      } else {
        seen.stream[tag] = hits(result.response);
      }
    });
    call.on("error", reject);
    call.on("end", () => resolve(seen));
    for (const [tag, search] of [{ query: "seat" }, { query: "meal" }, { query: "x", limit: 0 }].entries()) {
      call.write({ tag, search: { namespace, ...search } });
    }
    call.end();
  });
}

function details(error: grpc.ServiceError): Message {
  const seen: Message = { code: error.code, reason: "", domain: "", fields: [] };
  const [status] = error.metadata.get("grpc-status-details-bin") as Buffer[];
  for (const { type_url, value } of read("Status", status!).details) {
    if (type_url.endsWith("/google.rpc.ErrorInfo")) {
      Object.assign(seen, read("ErrorInfo", value));
    } else if (type_url.endsWith("/google.rpc.BadRequest")) {
      seen.fields = read("BadRequest", value).field_violations.map((violation: Message) => violation.field);
    }
  }
  return seen;
}

async function talk(address: string, segments: string[]): Promise<Message> {
  const client = new MemoryService(address, grpc.credentials.createInsecure());
  const namespace = { segments };
  const health = await new Promise<string>((resolve, reject) =>
    client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      () => Buffer.alloc(0),
      (bytes: Buffer) => read("HealthCheckResponse", bytes).status,
      {},
      new grpc.Metadata(),
      deadline(),
      (error: grpc.ServiceError | null, status?: string) => (error ? reject(error) : resolve(status!)),
    ),
  );
  const written = await unary(client, "Write", {
    namespace,
    items: [
      {
        key: "seat",
        kind: "preference",
        content: "Alice prefers aisle seats on long flights.",
        metadata: { order: { int_value: "9007199254740993" } },
      },
      { key: "meal", content: "Alice eats no meat. \u00c9t\u00e9 \u4e2d\u6587 \u{1f680}" },
    ],
  });
  const found = await unary(client, "Search", {
    namespace,
    query: "which seat does she like?",
    limit: 5,
    at_least_as_fresh: written.token,
  });
  const got = await unary(client, "Get", { namespace, keys: ["meal", "none", "seat"] });
  const brief = await unary(client, "Brief", { namespace, query: "book a flight", budget_tokens: 200 });
  const streamed = await stream(client, namespace);
  const error = await unary(client, "Search", { namespace, query: "x", limit: 0 }).then(() => {
    throw new Error("a wrong search was answered");
  }, details);
  client.close();
  return {
    health,
    outcomes: written.receipts.map((receipt: Message) => receipt.outcome),
    hits: hits(found),
    content: got.memories[0].content,
    order: got.memories[1].metadata.order.int_value,
    missing: got.missing_keys,
    brief: brief.text,
    tokens: brief.tokens,
    ...streamed,
    error,
  };
}

const answers: Message = {};
for (const [number, address] of process.argv.slice(2).entries()) {
  answers[address] = await talk(address, ["toolchains", "typescript", String(number)]);
}
console.log(JSON.stringify(answers));
