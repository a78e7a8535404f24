package aggregator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The params for an upstream are the same whether they are made in place or copied, and the
// bytes around them do not change.
func TestParamsInPlace(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{\"x\":1}`, 1000)
	for _, test := range []struct {
		name, params, upstream string
		inPlace                bool
	}{
		{"usual", `{"name":"use_tool","arguments":{"tool_name":"s/echo","tool_input":{"a":1.0}}}`, "echo", true},
		{"members around", ` {"_meta":{"progressToken":1},"name" : "use_tool", "x":[1] ,"arguments" : { "tool_input" : {"a":1} , "tool_name":"s/echo" } ,"y":2 } `, "echo", true},
		{"a large input", `{"name":"use_tool","arguments":{"tool_name":"s/echo","tool_input":{"a":"` + long + `"}},"y":2}`, "echo", true},
		{"a name to escape", `{"name":"use_tool","arguments":{"tool_name":"s/a\"é","tool_input":{}}}`, `a"é`, true},
		{"a longer name than there is room", `{"name":"u","arguments":{"tool_input":{"a":1},"tool_name":"s/x"}}`, strings.Repeat("n", 60), false},
		{"arguments first", `{"arguments":{"tool_name":"s/echo","tool_input":{"a":1}},"name":"use_tool"}`, "echo", false},
		{"much behind", `{"name":"use_tool","arguments":{"tool_name":"s/echo","tool_input":{}},"_meta":{"a":"` + long + `"}}`, "echo", false},
	} {
		line := []byte("before" + test.params + "behind")
		all := line[len("before") : len("before")+len(test.params)]
		p := call.Params{All: all}
		var err error
		if p.Name, p.Arguments, err = (*wire.Outline)(nil).FindStrict(all, "name", "arguments"); err != nil {
			t.Fatal(err)
		}
		input := wire.Get(p.Arguments.In(all), "tool_input")
		want := string(wire.Replace(all, wire.Edit{Span: p.Name, With: wire.Quote(test.upstream)}, wire.Edit{Span: p.Arguments, With: bytes.Clone(input)}))
		got := p.With(test.upstream, input)
		if string(got.Text) != want {
			t.Errorf("%s: got %.200s, want %.200s", test.name, got.Text, want)
		}
		if arguments := wire.Get(got.Text, "arguments"); string(got.Known.In(got.Text)) != string(arguments) {
			t.Errorf("%s: the arguments are at %v, which is %.200s", test.name, got.Known, got.Known.In(got.Text))
		}
		if inPlace := wire.Locate(line, got.Text).Len > 0; inPlace != test.inPlace {
			t.Errorf("%s: in place %t, want %t", test.name, inPlace, test.inPlace)
		}
		if !bytes.HasPrefix(line, []byte("before")) || !bytes.HasSuffix(line, []byte("behind")) {
			t.Errorf("%s: got %.20q … %.20q around it", test.name, line, line[len(line)-20:])
		}
	}
}
