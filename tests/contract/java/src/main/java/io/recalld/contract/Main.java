package io.recalld.contract;

import com.google.gson.Gson;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The calls of recalld as a program in Java makes them, from descriptors that buf makes of the proto files.
 *
 * <p>Requests and answers are JSON in the mapping of protobuf. It talks to each address after the file of descriptors,
 * in a namespace of its own, and prints one JSON object with what it saw.
 */
public final class Main {
  private static final long LIMIT_SECONDS = 60;
  private static final Gson GSON = new Gson();

  private final Map<String, Descriptors.MethodDescriptor> methods;
  private final ManagedChannel channel;
  private final String namespace;

  private Main(Map<String, Descriptors.MethodDescriptor> methods, ManagedChannel channel, String namespace) {
    this.methods = methods;
    this.channel = channel;
    this.namespace = namespace;
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Descriptors.MethodDescriptor> methods = methods(Path.of(arguments[0]));
    EpollEventLoopGroup loops = new EpollEventLoopGroup(1);
    Map<String, Object> answers = new LinkedHashMap<>();
    for (int number = 1; number < arguments.length; number++) {
      String address = arguments[number];
      ManagedChannel channel = channel(address, loops);
      String namespace = "\"namespace\": {\"segments\": [\"toolchains\", \"java\", \"" + (number - 1) + "\"]}";
      answers.put(address, new Main(methods, channel, namespace).talk());
      channel.shutdown().awaitTermination(LIMIT_SECONDS, TimeUnit.SECONDS);
    }
    loops.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    System.out.println(GSON.toJson(answers));
  }

  private static ManagedChannel channel(String address, EpollEventLoopGroup loops) {
    if (!address.startsWith("unix:")) {
      return NettyChannelBuilder.forTarget(address).usePlaintext().build();
    }
    DomainSocketAddress socket = new DomainSocketAddress(address.substring("unix:".length()));
    return NettyChannelBuilder.forAddress(socket)
        .channelType(EpollDomainSocketChannel.class)
        .eventLoopGroup(loops)
        .usePlaintext()
        .build();
  }

  private static Map<String, Descriptors.MethodDescriptor> methods(Path descriptors) throws Exception {
    Map<String, FileDescriptor> files = new HashMap<>();
    Map<String, Descriptors.MethodDescriptor> methods = new HashMap<>();
    // A file stands after those that it imports.
    for (FileDescriptorProto file : FileDescriptorSet.parseFrom(Files.readAllBytes(descriptors)).getFileList()) {
      FileDescriptor[] imports = file.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
      FileDescriptor built = FileDescriptor.buildFrom(file, imports);
      files.put(file.getName(), built);
      built.getServices().forEach(one -> one.getMethods().forEach(method -> methods.put(method.getName(), method)));
    }
    return methods;
  }

  private Map<String, Object> talk() throws Exception {
    Map<String, Object> seen = new LinkedHashMap<>();
    seen.put("health", HealthGrpc.newBlockingStub(channel)
        .withDeadlineAfter(LIMIT_SECONDS, TimeUnit.SECONDS)
        .check(HealthCheckRequest.getDefaultInstance()).getStatus().name());

    Map<?, ?> written = unary("Write", """
        "items": [
          {"key": "seat", "kind": "preference", "content": "Alice prefers aisle seats on long flights.",
           "metadata": {"order": {"intValue": "9007199254740993"}}},
          {"key": "meal", "content": "Alice eats no meat. \u00c9t\u00e9 \u4e2d\u6587 \ud83d\ude80"}
        ]""");
    seen.put("outcomes", list(written, "receipts").stream().map(receipt -> receipt.get("outcome")).toList());

    String search = "\"query\": \"which seat does she like?\", \"limit\": 5, \"atLeastAsFresh\": \"%s\"";
    seen.put("hits", hits(unary("Search", search.formatted(written.get("token")))));

    Map<?, ?> details = unary("Get", "\"keys\": [\"meal\", \"none\", \"seat\"]");
    List<Map<?, ?>> memories = list(details, "memories");
    seen.put("content", memories.get(0).get("content"));
    seen.put("order", map(map(memories.get(1).get("metadata")).get("order")).get("intValue"));
    seen.put("missing", details.get("missingKeys"));

    Map<?, ?> brief = unary("Brief", "\"query\": \"book a flight\", \"budgetTokens\": 200");
    seen.put("brief", brief.get("text"));
    seen.put("tokens", number(brief.get("tokens")));

    stream(seen);
    seen.put("error", failure());
    return seen;
  }

  /** Asks three searches without waiting, the last of which is wrong. */
  private void stream(Map<String, Object> seen) throws Exception {
    Map<String, Object> answered = new TreeMap<>();
    Map<String, String> failed = new TreeMap<>();
    CompletableFuture<Void> ended = new CompletableFuture<>();
    var call = channel.newCall(method("SearchStream", MethodDescriptor.MethodType.BIDI_STREAMING), options());
    StreamObserver<Message> requests = ClientCalls.asyncBidiStreamingCall(call, new StreamObserver<>() {
      @Override
      public void onNext(Message message) {
        Map<?, ?> answer = json(message);
        String tag = String.valueOf(answer.get("tag"));
        Map<?, ?> result = map(answer.get("result"));
        if (result.containsKey("failure")) {
          failed.put(tag, String.valueOf(number(map(result.get("failure")).get("code"))));
        } else {
          answered.put(tag, hits(map(result.get("response"))));
        }
      }

      @Override
      public void onError(Throwable error) {
        ended.completeExceptionally(error);
      }

      @Override
      public void onCompleted() {
        ended.complete(null);
      }
    });
    List<String> searches = List.of("\"query\": \"seat\"", "\"query\": \"meal\"", "\"query\": \"x\", \"limit\": 0");
    for (int tag = 0; tag < searches.size(); tag++) {
      String search = "{" + namespace + ", " + searches.get(tag) + "}";
      requests.onNext(message("SearchStream", "{\"tag\": " + tag + ", \"search\": " + search + "}"));
    }
    requests.onCompleted();
    ended.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    seen.put("stream", answered);
    seen.put("failed", failed);
  }

  private Map<String, Object> failure() throws Exception {
    StatusRuntimeException error;
    try {
      unary("Search", "\"query\": \"x\", \"limit\": 0");
      throw new IllegalStateException("a wrong search was answered");
    } catch (StatusRuntimeException raised) {
      error = raised;
    }
    Map<String, Object> seen = new LinkedHashMap<>();
    seen.put("code", error.getStatus().getCode().value());
    for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        seen.put("reason", detail.unpack(ErrorInfo.class).getReason());
        seen.put("domain", detail.unpack(ErrorInfo.class).getDomain());
      } else if (detail.is(BadRequest.class)) {
        List<String> fields = new ArrayList<>();
        detail.unpack(BadRequest.class).getFieldViolationsList().forEach(wrong -> fields.add(wrong.getField()));
        seen.put("fields", fields);
      }
    }
    return seen;
  }

  private Map<?, ?> unary(String name, String fields) throws Exception {
    Message request = message(name, "{" + namespace + ", " + fields + "}");
    var method = method(name, MethodDescriptor.MethodType.UNARY);
    return json(ClientCalls.blockingUnaryCall(channel, method, options(), request));
  }

  private MethodDescriptor<Message, Message> method(String name, MethodDescriptor.MethodType type) {
    Descriptors.MethodDescriptor method = methods.get(name);
    Message request = DynamicMessage.getDefaultInstance(method.getInputType());
    Message answer = DynamicMessage.getDefaultInstance(method.getOutputType());
    return MethodDescriptor.newBuilder(ProtoUtils.marshaller(request), ProtoUtils.marshaller(answer))
        .setType(type)
        .setFullMethodName(MethodDescriptor.generateFullMethodName(method.getService().getFullName(), name))
        .build();
  }

  private Message message(String name, String json) throws Exception {
    DynamicMessage.Builder builder = DynamicMessage.newBuilder(methods.get(name).getInputType());
    JsonFormat.parser().merge(json, builder);
    return builder.build();
  }

  private static CallOptions options() {
    return CallOptions.DEFAULT.withDeadlineAfter(LIMIT_SECONDS, TimeUnit.SECONDS);
  }

  private static Map<?, ?> json(Message message) {
    try {
      return GSON.fromJson(JsonFormat.printer().alwaysPrintFieldsWithNoPresence().print(message), Map.class);
    } catch (com.google.protobuf.InvalidProtocolBufferException error) {
      throw new IllegalStateException(error);
    }
  }

  private static List<Map<String, Object>> hits(Map<?, ?> response) {
    List<Map<String, Object>> hits = new ArrayList<>();
    for (Map<?, ?> hit : list(response, "hits")) {
      hits.add(Map.of(
          "id", hit.get("id"),
          "key", hit.get("key"),
          "summary", hit.get("summary"),
          "content_tokens", number(hit.get("contentTokens"))));
    }
    return hits;
  }

  private static Map<?, ?> map(Object value) {
    return (Map<?, ?>) value;
  }

  private static List<Map<?, ?>> list(Map<?, ?> message, String name) {
    List<Map<?, ?>> elements = new ArrayList<>();
    ((List<?>) message.get(name)).forEach(element -> elements.add(map(element)));
    return elements;
  }

  private static long number(Object value) {
    return ((Number) value).longValue();
  }
}
