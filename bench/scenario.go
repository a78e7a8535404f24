package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/echo"
)

// A scenario is what is sent both ways, and how many calls wait at once.
type scenario struct {
	name     string
	size     int // of what is sent, in bytes
	content  func(size int) string
	inFlight int
	calls    int
	few      bool // only pump and dynmcp
	how      how
}

// how says in what form a call is made.
type how struct {
	members string // of the arguments, before the text
	tool    string // instead of echo
	direct  bool   // the tool is called by its own name, not through use_tool
}

// several are the arguments that a model sends beside a text.
const several = `"limit":50,"since":"2026-01-31","labels":["bug","urgent"],"draft":false,`

func (s scenario) String() string {
	return fmt.Sprintf("%s both ways, %d in flight", s.name, s.inFlight)
}

var scenarios = []scenario{
	{"100 B", 100, text, 1, 4000, false, how{}},
	{"10 KB", 10 << 10, text, 1, 2000, false, how{}},
	{"1 MB", 1 << 20, text, 1, 100, false, how{}},
	{"100 B", 100, text, 64, 40000, false, how{}},
	{"10 KB", 10 << 10, text, 64, 16000, false, how{}},
	{"1 MB", 1 << 20, text, 64, 256, true, how{}},
	{"10 KB of structure", 10 << 10, structure, 64, 16000, true, how{}},
	{"1 MB of structure", 1 << 20, structure, 64, 256, true, how{}},
	{"1 MB without an escape", 1 << 20, plain, 64, 256, true, how{}},
	{"5 MB", 5 << 20, text, 64, 192, true, how{}},
	{"100 B, several arguments", 100, text, 1, 4000, true, how{members: several}},
	{"10 KB, several arguments", 10 << 10, text, 64, 16000, true, how{members: several}},
	{"10 KB, structured result", 10 << 10, text, 64, 16000, true, how{tool: echo.Structured}},
	{"100 B, direct surface", 100, text, 64, 40000, true, how{direct: true}},
	{"10 KB, direct surface", 10 << 10, text, 64, 16000, true, how{direct: true}},
}

// text is what a tool reads and a model writes: words, and every 25 bytes or so an escape
// of two. It is the rest of a string that has begun, with its quote.
func text(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		b.WriteString("abcdefghijkl"[:1+random.IntN(12)])
		if random.IntN(7) > 1 {
			b.WriteByte(' ')
			continue
		}
		b.WriteString([]string{`\n`, `\n`, `\"`, `\"`, `\\`, `\t`}[random.IntN(6)])
	}
	return b.String() + `"`
}

// plain is what is in no text but those of benchmarks.
func plain(size int) string { return strings.Repeat("x", size) + `"` }

// structure is rows of members behind the text. It ends with a string, behind which
// the upstream puts nothing of its own.
func structure(size int) string {
	var b strings.Builder
	b.WriteString(`","rows":[`)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, `{"id":%d,"name":"row %d","tags":["a","b"],"score":%d.50,"open":true,"next":null},`, n, n, n)
	}
	return b.String() + `{}],"end":""`
}
