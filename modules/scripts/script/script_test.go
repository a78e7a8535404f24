package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

// leftOver returns an error if the tests have left processes or descriptors; nil if unknown.
var leftOver func() error

func TestMain(m *testing.M) {
	mcptest.Parallel(8) // many wait a second
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if leftOver != nil {
			if err := leftOver(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		os.Exit(code)
	}))
}

// newPool returns a pool that the end of the test closes.
func newPool(t testing.TB) *script.Pool {
	p := &script.Pool{BestEffort: runtime.GOOS != "linux"}
	t.Cleanup(p.Close)
	return p
}

// text returns the result of a tool with a block of text.
func text(content string) json.RawMessage {
	quoted, _ := json.Marshal(content)
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, quoted)
}

// calls are the answers to a script.
type calls struct {
	Call             func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, *script.Failure)
	Search, Describe func(ctx context.Context, text string) (string, *script.Failure)
	Resource         func(ctx context.Context, uri string) (json.RawMessage, *script.Failure)
}

func (c calls) answer(ctx context.Context, call script.Call) (json.RawMessage, *script.Failure) {
	ask := c.Search
	switch call.Kind {
	case engine.Tool:
		return c.Call(ctx, call.Name, call.Args)
	case engine.Resource:
		return c.Resource(ctx, call.Name)
	case engine.Describe:
		ask = c.Describe
	}
	text, err := ask(ctx, call.Name)
	quoted, _ := json.Marshal(text)
	return quoted, err
}

// of returns a script with the default limits of a config.
func of(source string) script.Script {
	return script.Script{Time: 5 * time.Minute, Run: engine.Run{Source: source, Servers: []string{"github", "my-server"}, Calls: 200, AtOnce: 16, Output: 64 << 10}}
}

// echo answers each call with its arguments, each search and description with its words.
var echo = calls{
	Call: func(_ context.Context, name string, args json.RawMessage) (json.RawMessage, *script.Failure) {
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"name":%q,"args":%s}}`, name, args), nil
	},
	Search:   func(_ context.Context, words string) (string, *script.Failure) { return "found " + words, nil },
	Describe: func(_ context.Context, name string) (string, *script.Failure) { return "described " + name, nil },
	Resource: func(_ context.Context, uri string) (json.RawMessage, *script.Failure) {
		return fmt.Appendf(nil, `{"contents":[{"uri":%q,"text":"read"}]}`, uri), nil
	},
}

// answering returns calls that all have this result.
func answering(result string) calls {
	return calls{Call: func(context.Context, string, json.RawMessage) (json.RawMessage, *script.Failure) {
		return json.RawMessage(result), nil
	}}
}

// run runs a script that must succeed.
func run(t testing.TB, p *script.Pool, source string, calls calls) *script.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := p.Run(ctx, of(source), calls.answer)
	if err != nil {
		t.Fatalf("%s\n%v", source, err)
	}
	return r
}
