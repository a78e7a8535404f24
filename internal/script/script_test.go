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

	"github.com/dynmcp/dynmcp/internal/script"
)

// leftOver says what the tests have left besides goroutines; nil is not known.
var leftOver func() error

func TestMain(m *testing.M) {
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

// text is a result of a tool with a block of text.
func text(content string) json.RawMessage {
	quoted, _ := json.Marshal(content)
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, quoted)
}

// echo answers each call with its arguments, each search and description with its words.
var echo = script.Calls{
	Call: func(_ context.Context, name string, args json.RawMessage) (json.RawMessage, *script.CallError) {
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"name":%q,"args":%s}}`, name, args), nil
	},
	Search:   func(_ context.Context, words string) (string, *script.CallError) { return "found " + words, nil },
	Describe: func(_ context.Context, name string) (string, *script.CallError) { return "described " + name, nil },
	Resource: func(_ context.Context, uri string) (json.RawMessage, *script.CallError) {
		return fmt.Appendf(nil, `{"contents":[{"uri":%q,"text":"read"}]}`, uri), nil
	},
}

// answering returns calls of which each has this result.
func answering(result string) script.Calls {
	return script.Calls{Call: func(context.Context, string, json.RawMessage) (json.RawMessage, *script.CallError) {
		return json.RawMessage(result), nil
	}}
}

// run runs a script that is to return.
func run(t testing.TB, p *script.Pool, source string, calls script.Calls) *script.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := p.Run(ctx, script.Script{Source: source, Servers: []string{"github", "my-server"}}, calls)
	if err != nil {
		t.Fatalf("%s\n%v", source, err)
	}
	return r
}
