// A Lambda function in Go, as for AWS: it knows nothing of Hearth.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type request struct {
	events.LambdaFunctionURLRequest
	Do string `json:"do"`
}

var calls int

func handler(ctx context.Context, raw json.RawMessage) (any, error) {
	var event request
	// What is no object is echoed.
	_ = json.Unmarshal(raw, &event)
	what := event.Do
	if what == "" {
		what = event.QueryStringParameters["do"]
	}
	calls++
	fmt.Println("does", what)
	switch what {
	case "context":
		info, _ := lambdacontext.FromContext(ctx)
		deadline, _ := ctx.Deadline()
		directory, _ := os.Getwd()
		return map[string]any{
			"request_id": info.AwsRequestID,
			"arn":        info.InvokedFunctionArn,
			"trace":      ctx.Value("x-amzn-trace-id"),
			"function":   lambdacontext.FunctionName,
			"version":    lambdacontext.FunctionVersion,
			"memory":     lambdacontext.MemoryLimitInMB,
			"handler":    os.Getenv("_HANDLER"),
			"root":       os.Getenv("LAMBDA_TASK_ROOT"),
			"api":        os.Getenv("AWS_LAMBDA_RUNTIME_API"),
			"directory":  directory,
			"left_ms":    time.Until(deadline).Milliseconds(),
			"calls":      calls,
		}, nil
	case "fail":
		return nil, errors.New("as asked")
	case "panic":
		panic("as asked")
	case "sleep":
		time.Sleep(time.Minute)
	case "url":
		return events.LambdaFunctionURLResponse{
			StatusCode: 201,
			Headers:    map[string]string{"x-path": event.RawPath, "content-type": "text/plain"},
			Cookies:    []string{"a=b"},
			Body:       event.RequestContext.HTTP.Method + " " + event.Body,
		}, nil
	case "stream":
		return &events.LambdaFunctionURLStreamingResponse{
			StatusCode: 202,
			Headers:    map[string]string{"x-streamed": "yes"},
			Body:       strings.NewReader(strings.Repeat("0123456789abcdef", 1<<19)),
		}, nil
	}
	return raw, nil
}

func main() {
	lambda.Start(handler)
}
