//go:build unix

package aggregator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest/drawing"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// The two drawings of a call in doc.go have the frames of a real call.
func TestFramesAreAsDrawn(t *testing.T) {
	t.Parallel()
	there, back := framesOfCall(t)
	drawing.Compare(t, "doc.go", there, back)
}

// framesOfCall calls use_tool until one call was written to the upstream by the goroutine
// that reads the host, and one answer to the host by the goroutine that reads the upstream.
func framesOfCall(t *testing.T) (there, back []string) {
	r := startDrawn(t, schema.Single("up", nil), nil)
	r.toHost.trace("Conn.readLines ")
	r.toUpstream.trace("Stdio.read ")
	for n := 1; n <= 100 && (there == nil || back == nil); n++ {
		r.ask("tools/call", `{"name":"use_tool","arguments":{"tool_name":"echo","tool_input":{}}}`)
		there, back = r.toUpstream.taken(), r.toHost.taken()
	}
	return there, back
}

// A drawnRun is a run with one server and one host, whose writes are traced.
type drawnRun struct {
	t        *testing.T
	agg      *Aggregator
	toHost   *tracedPipe
	fromHost *tracedPipe
	// Of the last connection.
	toUpstream, fromUpstream *tracedPipe
	answers                  *bufio.Reader
	asked                    int
}

// startDrawn starts a run. opened, if not nil, is called when the server is started, on the goroutine that
// starts it.
func startDrawn(t *testing.T, cfg *schema.Config, opened func()) *drawnRun {
	r := &drawnRun{t: t, toHost: &tracedPipe{}, toUpstream: &tracedPipe{}, fromHost: &tracedPipe{}}
	r.answers = bufio.NewReader(r.toHost.open(t))
	weRead := r.fromHost.open(t)
	var err error
	if r.agg, err = New(cfg, Options{Version: "1"}); err != nil {
		t.Fatal(err)
	}
	r.agg.fleet.Open = func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
		if opened != nil {
			opened()
		}
		opts.Cork = nil // what is sent is written at once
		answers := &tracedPipe{}
		stream := struct {
			io.Reader
			*tracedPipe
		}{answers.open(t), r.toUpstream}
		r.fromUpstream = answers
		go answerCalls(r.toUpstream.open(t), answers)
		return upstream.OpenStream(server, stream, opts), nil
	}
	served := make(chan error, 1)
	go func() {
		served <- r.agg.serveLines(context.Background(), host.NewStdio(weRead, r.toHost, nil), Identity{Local: true, MayLogIn: true, Persistent: true})
	}()
	t.Cleanup(func() {
		r.fromHost.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		r.agg.Close()
	})
	r.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}`)
	fmt.Fprintln(r.fromHost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

// ask sends a request of the host and waits for its result.
func (r *drawnRun) ask(method, params string) {
	r.asked++
	fmt.Fprintf(r.fromHost, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", r.asked, method, params)
	r.await(method, func(m wire.Message) bool { return m.Method == "" && string(m.ID) == fmt.Sprint(r.asked) })
}

// await reads messages to the host up to one.
func (r *drawnRun) await(what string, is func(wire.Message) bool) {
	for {
		line, err := r.answers.ReadBytes('\n')
		if err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		if m, _ := wire.Parse(line); is(m) {
			if m.Error != nil {
				r.t.Fatalf("%s: %s", what, m.Error)
			}
			return
		}
	}
}

// answerCalls is an upstream whose list of tools is another one each time.
func answerCalls(calls io.Reader, answers io.WriteCloser) {
	defer answers.Close()
	lists := 0
	for lines := bufio.NewScanner(calls); lines.Scan(); {
		m, _ := wire.Parse(lines.Bytes())
		if m.Method == "tools/list" {
			lists++
		}
		result, ok := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"up","version":"1"}}`,
			"tools/list": fmt.Sprintf(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"tool%d","inputSchema":{"type":"object"}}]}`, lists),
			"tools/call": `{"content":[]}`,
			"ping":       `{}`,
		}[m.Method]
		switch {
		case m.ID == nil:
		case ok:
			fmt.Fprintf(answers, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		default:
			fmt.Fprintf(answers, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
}

// A tracedPipe is the write end of a pipe. It keeps the stack of the first write by a
// [wire.Writer] that has a frame called begin, from that frame on.
type tracedPipe struct {
	*os.File

	mu     sync.Mutex
	begin  string // "" for no stack
	frames []string
}

// open makes the pipe and returns the end to be read.
func (p *tracedPipe) open(t *testing.T) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.File = w
	t.Cleanup(func() { r.Close(); w.Close() })
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return r
}

// trace makes the pipe keep the stack of the next such write.
func (p *tracedPipe) trace(begin string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin, p.frames = begin, nil
}

func (p *tracedPipe) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frames
}

// SyscallConn implements syscall.Conn, by which a wire.Writer writes.
func (p *tracedPipe) SyscallConn() (syscall.RawConn, error) {
	raw, err := p.File.SyscallConn()
	return tracedConn{raw, p}, err
}

type tracedConn struct {
	syscall.RawConn
	pipe *tracedPipe
}

// Write implements syscall.RawConn.
func (c tracedConn) Write(f func(fd uintptr) bool) error {
	p := c.pipe
	p.mu.Lock()
	if p.begin != "" && p.frames == nil {
		p.frames = drawing.Stack(p.begin, " wire/")
	}
	p.mu.Unlock()
	return c.RawConn.Write(f)
}
