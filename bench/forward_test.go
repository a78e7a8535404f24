package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/bench/internal/pipes"
	"github.com/dynmcp/dynmcp/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BenchmarkForward is one call through everything but the process: the host's
// edge, the aggregator, an upstream that is a real child. Allocations count
// dynmcp's own, and the driver's, which makes none.
func BenchmarkForward(b *testing.B) {
	upstream := filepath.Join(b.TempDir(), "upstream")
	if out, err := exec.Command("go", "build", "-o", upstream, "./upstream").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	for _, size := range []int{100, 10 << 10, 1 << 20} {
		for _, inFlight := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%d/inflight=%d", size, inFlight), func(b *testing.B) {
				forward(b, upstream, size, inFlight)
			})
		}
	}
}

func forward(b *testing.B, upstream string, size, inFlight int) {
	agg, err := aggregator.New(schema.Single(upstream, nil), aggregator.Options{Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer agg.Close()
	theirIn, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- agg.Serve(context.Background(), theirIn, theirOut) }()
	p := &process{in: in, out: pipes.NewReader(out, false)}
	if err := p.handshake(); err != nil {
		b.Fatal(err)
	}
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"echo","tool_input":{"text":"%s"}}}}`+"\n", strings.Repeat("x", size))
	ids := make([][]byte, inFlight)
	for i := range ids {
		ids[i] = []byte(strings.Replace(string(line), `"id":7`, fmt.Sprintf(`"id":%d`, i), 1))
	}
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(inFlight, b.N-done)
		go func() {
			for i := range n {
				if _, err := in.Write(ids[i]); err != nil {
					b.Error(err)
					return
				}
			}
		}()
		for range n {
			if _, err := p.out.Next(); err != nil {
				b.Fatal(err)
			}
		}
		done += n
	}
	b.StopTimer()
	in.Close()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}
