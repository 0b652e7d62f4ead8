// The calls of recalld as a program in Go makes them, with nothing but what protoc-gen-go generates.
//
// It talks to each address that it is given, in a namespace of its own, and prints one JSON object with what it saw.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/recalld/recalld/tests/contract/go/build/recalld/v1"
)

const limit = 60 * time.Second

type hit struct {
	ID            string `json:"id"`
	Key           string `json:"key"`
	Summary       string `json:"summary"`
	ContentTokens uint32 `json:"content_tokens"`
}

type failure struct {
	Code   int      `json:"code"`
	Reason string   `json:"reason"`
	Domain string   `json:"domain"`
	Fields []string `json:"fields"`
}

type seen struct {
	Health   string            `json:"health"`
	Outcomes []string          `json:"outcomes"`
	Hits     []hit             `json:"hits"`
	Content  string            `json:"content"`
	Order    string            `json:"order"`
	Missing  []string          `json:"missing"`
	Brief    string            `json:"brief"`
	Tokens   uint32            `json:"tokens"`
	Stream   map[string][]hit  `json:"stream"`
	Failed   map[string]string `json:"failed"`
	Error    failure           `json:"error"`
}

func main() {
	answers := map[string]*seen{}
	for number, address := range os.Args[1:] {
		answer, err := talk(address, []string{"toolchains", "go", fmt.Sprint(number)})
		if err != nil {
			fmt.Fprintln(os.Stderr, address, err)
			os.Exit(1)
		}
		answers[address] = answer
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}

func talk(address string, segments []string) (*seen, error) {
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer channel.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	memory := pb.NewMemoryServiceClient(channel)
	namespace := &pb.Namespace{Segments: segments}
	answer := &seen{Stream: map[string][]hit{}, Failed: map[string]string{}}

	health, err := grpc_health_v1.NewHealthClient(channel).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return nil, err
	}
	answer.Health = health.Status.String()

	written, err := memory.Write(ctx, &pb.WriteRequest{Namespace: namespace, Items: []*pb.WriteItem{
		{
			Key: "seat", Kind: "preference", Content: "Alice prefers aisle seats on long flights.",
			Metadata: map[string]*pb.Value{"order": {Kind: &pb.Value_IntValue{IntValue: 1<<53 + 1}}},
		},
		{Key: "meal", Content: "Alice eats no meat. \u00c9t\u00e9 \u4e2d\u6587 \U0001f680"},
	}})
	if err != nil {
		return nil, err
	}
	for _, receipt := range written.Receipts {
		answer.Outcomes = append(answer.Outcomes, receipt.Outcome.String())
	}

	search := &pb.SearchRequest{
		Namespace: namespace, Query: "which seat does she like?", Limit: proto.Uint32(5), AtLeastAsFresh: written.Token,
	}
	found, err := memory.Search(ctx, search)
	if err != nil {
		return nil, err
	}
	answer.Hits = hits(found)

	details, err := memory.Get(ctx, &pb.GetRequest{Namespace: namespace, Keys: []string{"meal", "none", "seat"}})
	if err != nil {
		return nil, err
	}
	answer.Content = details.Memories[0].Content
	answer.Order = fmt.Sprint(details.Memories[1].Metadata["order"].GetIntValue())
	answer.Missing = details.MissingKeys

	brief, err := memory.Brief(ctx, &pb.BriefRequest{Namespace: namespace, Query: "book a flight", BudgetTokens: proto.Uint32(200)})
	if err != nil {
		return nil, err
	}
	answer.Brief, answer.Tokens = brief.Text, brief.Tokens

	if err := stream(ctx, memory, namespace, answer); err != nil {
		return nil, err
	}

	_, err = memory.Search(ctx, &pb.SearchRequest{Namespace: namespace, Query: "x", Limit: proto.Uint32(0)})
	told, ok := status.FromError(err)
	if !ok || err == nil {
		return nil, fmt.Errorf("a wrong search was answered: %w", err)
	}
	answer.Error = failure{Code: int(told.Code()), Fields: []string{}}
	for _, detail := range told.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			answer.Error.Reason, answer.Error.Domain = detail.Reason, detail.Domain
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				answer.Error.Fields = append(answer.Error.Fields, violation.Field)
			}
		}
	}
	return answer, nil
}

// stream asks three searches without waiting, the last of which is wrong.
func stream(ctx context.Context, memory pb.MemoryServiceClient, namespace *pb.Namespace, answer *seen) error {
	call, err := memory.SearchStream(ctx)
	if err != nil {
		return err
	}
	for tag, search := range []*pb.SearchRequest{{Query: "seat"}, {Query: "meal"}, {Query: "x", Limit: proto.Uint32(0)}} {
		search.Namespace = namespace
		if err := call.Send(&pb.SearchStreamRequest{Tag: uint64(tag), Search: search}); err != nil {
			return err
		}
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	for {
		response, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		tag := fmt.Sprint(response.Tag)
		if failed := response.Result.GetFailure(); failed != nil {
			answer.Failed[tag] = fmt.Sprint(failed.Code)
		} else {
			answer.Stream[tag] = hits(response.Result.GetResponse())
		}
	}
}

func hits(response *pb.SearchResponse) []hit {
	found := []hit{}
	for _, one := range response.Hits {
		found = append(found, hit{ID: one.Id, Key: one.Key, Summary: one.Summary, ContentTokens: one.ContentTokens})
	}
	return found
}
