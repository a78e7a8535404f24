package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Any JSON passes through unchanged. Only line breaks between tokens become spaces,
// because a message is a line.

// wrapped is one server, shown as itself: dynmcp changes only the id of a message.
const wrapped = `
-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"tools":{},"prompts":{"listChanged":true}}
single
expose direct
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`

// catalogued is one of many servers, used through use_tool.
const catalogued = `
-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"tools":{}}
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`

func TestAnyResultPasses(t *testing.T) {
	t.Parallel()
	passes(t, wrapped, func(t *rapid.T, talk *talk) {
		params := anyObject(t, "params", `"name":"echo"`)
		result := anyValue.Draw(t, "result")
		talk.expect("the params", talk.request("tools/call", params), oneLine(params))
		talk.expect("the result", talk.answer("result", result), oneLine(result))
	})
}

func TestAnyErrorPasses(t *testing.T) {
	t.Parallel()
	passes(t, wrapped, func(t *rapid.T, talk *talk) {
		method := rapid.SampledFrom([]string{"tools/call", "resources/read", "prompts/get", "x-unknown/do"}).Draw(t, "method")
		params := anyObject(t, "params", `"name":"echo"`, `"uri":"x://1"`)
		failure := anyObject(t, "error", `"code":`+anyInteger.Draw(t, "code"), `"message":`+anyString.Draw(t, "message"))
		talk.expect("the params", talk.request(method, params), oneLine(params))
		talk.expect("the error", talk.answer("error", failure), oneLine(failure))
	})
}

func TestAnyInputPasses(t *testing.T) {
	t.Parallel()
	passes(t, catalogued, func(t *rapid.T, talk *talk) {
		input := anyObject(t, "input")
		meta := anyObject(t, "meta")
		result := anyValue.Draw(t, "result")
		var sent, want []string
		for _, n := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
			sent = append(sent, []string{`"name":"use_tool"`, `"_meta": ` + meta, `"arguments":{"tool_input":` + input + `,"tool_name":"up/echo"}`}[n])
			want = append(want, []string{`"name":"echo"`, `"_meta": ` + meta, `"arguments":` + input}[n])
		}
		got := talk.request("tools/call", "{"+strings.Join(sent, ",")+"}")
		talk.expect("the params", got, oneLine("{"+strings.Join(want, ",")+"}"))
		talk.expect("the result", talk.answer("result", result), oneLine(result))
	})
}

func TestAnyEntryPasses(t *testing.T) {
	t.Parallel()
	passes(t, wrapped, func(t *rapid.T, talk *talk) {
		one, two := anyObject(t, "one", `"name":"one"`), anyObject(t, "two", `"name":"two"`)
		talk.upstream.send(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
		m, err := wire.Parse([]byte(talk.one(talk.upstream)))
		if err != nil || m.Method != "prompts/list" {
			t.Fatalf("the upstream got %s", m.Raw)
		}
		talk.upstream.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"prompts":[%s,%s]}}`, m.ID, one, two))
		time.Sleep(settling)
		talk.host.take() // the notification
		talk.host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"prompts/list"}`, talk.hostID))
		talk.expect("the list", talk.one(talk.host), oneLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"prompts":[%s,%s]}}`, talk.hostID, one, two)))
	})
}

// passes checks the property many times on one stage.
func passes(t *testing.T, setup string, property func(*rapid.T, *talk)) {
	onStage(t, setup, func(t *testing.T, st *stage) {
		// The struct hides Deadline, which panics in a bubble.
		n := 0
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			n++
			property(t, &talk{t: t, host: st.hosts[0], upstream: st.upstreams[0], hostID: n})
		})
	})
}

// A talk is one request and its answer.
type talk struct {
	t              *rapid.T
	host, upstream *actor
	hostID         int
	id             string // of the request at the upstream
}

// request makes the host send a request, and returns the params that the upstream
// got.
func (k *talk) request(method, params string) string {
	k.host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, k.hostID, method, params))
	got := k.one(k.upstream)
	head, rest, ok := strings.Cut(got, fmt.Sprintf(`,"method":%q,"params":`, method))
	if !ok {
		k.t.Fatalf("the upstream got %s", got)
	}
	k.id = strings.TrimPrefix(head, `{"jsonrpc":"2.0","id":`)
	return strings.TrimSuffix(rest, "}")
}

// answer makes the upstream answer it, and returns the value that the host got.
func (k *talk) answer(member, value string) string {
	k.upstream.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, k.id, member, value))
	got := k.one(k.host)
	rest, ok := strings.CutPrefix(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%q:`, k.hostID, member))
	if !ok {
		k.t.Fatalf("the host got %s", got)
	}
	return strings.TrimSuffix(rest, "}")
}

func (k *talk) one(a *actor) string {
	synctest.Wait()
	lines := a.take()
	if len(lines) != 1 {
		k.t.Fatalf("%s got %q, want one line; the others got %q, %q", a.name, lines, k.host.take(), k.upstream.take())
	}
	return lines[0]
}

func (k *talk) expect(what, got, want string) {
	if got != want {
		k.t.Fatalf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

// oneLine replaces line breaks between tokens, as dynmcp does.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
}

var (
	anyInteger = rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})`)
	anyNumber  = rapid.OneOf(anyInteger,
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,5})?`),
		rapid.SampledFrom([]string{"9007199254740993", "1.0", "-0", "1E400", "0e0", "1e-400"}))
	anySpace = rapid.SampledFrom([]string{"", "", "", "", " ", "\t", "  ", "\n", "\r\n", "\r", " \n\t", "\n\n"})
	piece    = rapid.OneOf(
		rapid.StringMatching(`[ !#-\[\]-~]{0,12}`),
		rapid.Map(rapid.Rune(), func(r rune) string {
			if r < 0x20 || r == '"' || r == '\\' {
				return fmt.Sprintf(`\u%04x`, r)
			}
			return string(r)
		}),
		rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u00E9`, `\ud83d\ude00`, `\ud800`, "é", "\u2028", "<&>", "😀"}))
	anyString = rapid.Map(rapid.SliceOfN(piece, 0, 6), func(pieces []string) string { return `"` + strings.Join(pieces, "") + `"` })
	anyName   = rapid.OneOf(anyString, rapid.SampledFrom([]string{
		`"id"`, `"result"`, `"error"`, `"method"`, `"uri"`, `"content"`, `"structuredContent"`, `"isError"`, `"__proto__"`, `""`}))
	anyValue = rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 40).Draw(t, "deep") == 0 {
			depth := rapid.IntRange(100, 500).Draw(t, "depth") // results may nest 512 levels
			return strings.Repeat("[", depth) + "1.0" + strings.Repeat("]", depth)
		}
		return drawValue(t, 5)
	})
)

func drawValue(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	switch {
	case kind >= 6 && depth > 0:
		return drawObject(t, depth, nil)
	case kind == 5 && depth > 0:
		var elements []string
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			elements = append(elements, spaced(t, drawValue(t, depth-1)))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case kind == 4 || kind == 3:
		return anyString.Draw(t, "string")
	case kind == 2:
		return rapid.SampledFrom([]string{"true", "false", "null", "{}", "[]", "{ }", "[\n]"}).Draw(t, "word")
	}
	return anyNumber.Draw(t, "number")
}

// drawObject returns an object of random members, with those given among them.
func drawObject(t *rapid.T, depth int, members []string) string {
	given := strings.Join(members, ",")
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		name := anyName.Draw(t, "name")
		if strings.Contains(given, name+":") {
			continue // which of two members counts is tested elsewhere
		}
		members = append(members, spaced(t, name)+":"+spaced(t, drawValue(t, depth-1)))
	}
	return "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"
}

func spaced(t *rapid.T, text string) string {
	return anySpace.Draw(t, "before") + text + anySpace.Draw(t, "after")
}

// anyObject returns a random object with the given members.
func anyObject(t *rapid.T, label string, members ...string) string {
	t.Logf("%s:", label)
	return drawObject(t, 5, members)
}
