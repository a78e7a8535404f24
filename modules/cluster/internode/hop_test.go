package internode

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
)

// BenchmarkHop compares a call at the replica that has its session with a call that another
// replica forwards to it. The host and both replicas share a process.
func BenchmarkHop(b *testing.B) {
	for name, size := range map[string]int{"small": 16, "100KB": 100 << 10, "10MB": 10 << 20} {
		b.Run(name, func(b *testing.B) {
			cluster := newTestCluster(b, answered)
			k := seal.Random()
			owner, other := cluster.add("a", k), cluster.add("b", k)
			id := owner.begin()
			body := call(1, strings.Repeat("x", size))
			inTurn(b, func() { callOnce(b, owner, id, body) }, func() { callOnce(b, other, id, body) })
		})
	}
}

func callOnce(b *testing.B, at *node, id, body string) {
	r := at.request(context.Background(), http.MethodPost, "/mcp", body, "Mcp-Session-Id", id)
	resp, err := at.cluster.hosts.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
}

// BenchmarkUpstreamHop compares a line there and back on a stream to another replica with one
// on a TCP connection without TLS.
func BenchmarkUpstreamHop(b *testing.B) {
	identity := keyed(b, seal.Random())
	at := serve(b, identity, Routes{Upstream: func(context.Context, string, string) (func(io.ReadWriteCloser), error) {
		return func(stream io.ReadWriteCloser) { echo(stream, "") }, nil
	}})
	stream, err := newClient(b, identity, "a").Open(b.Context(), at.Addr().String(), "x", "")
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		if conn, err := ln.Accept(); err == nil {
			echo(conn, "")
		}
	}()
	plain, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		plain.Close()
		<-echoed
	}()
	line := call(1, "x") + "\n"
	way := func(s io.ReadWriter) func() {
		lines := bufio.NewReader(s)
		return func() {
			if _, err := io.WriteString(s, line); err != nil {
				b.Fatal(err)
			}
			if _, err := lines.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
	}
	inTurn(b, way(plain), way(stream))
}

// inTurn runs two functions in turn. It reports the medians of their times, in microseconds, and
// their difference and ratio.
func inTurn(b *testing.B, one, two func()) {
	var times [2][]time.Duration
	for range 50 {
		one()
		two()
	}
	for b.Loop() {
		for i, way := range []func(){one, two} {
			start := time.Now()
			way()
			times[i] = append(times[i], time.Since(start))
		}
	}
	var median, late [2]float64
	for i := range times {
		slices.Sort(times[i])
		median[i] = float64(times[i][len(times[i])/2].Nanoseconds()) / 1000
		late[i] = float64(times[i][len(times[i])*99/100].Nanoseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op") // removes the metric, which would be of both together
	b.ReportMetric(median[0], "direct-µs")
	b.ReportMetric(median[1], "hop-µs")
	b.ReportMetric(median[1]-median[0], "added-µs")
	b.ReportMetric(median[1]/median[0], "ratio")
	b.ReportMetric(late[1]-late[0], "added-p99-µs")
}
