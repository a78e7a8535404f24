//go:build unix

package aggregator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// The two drawings of a call in doc.go have the frames of a real call.
func TestFramesAreAsDrawn(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var drawn [][]string
	frame := regexp.MustCompile(`^//\t( *└ )?([A-Za-z]+\.[A-Za-z]+) .* \[([a-z/_]+\.go)\]$`)
	for line := range strings.Lines(string(source)) {
		m := frame.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if m[1] == "" {
			drawn = append(drawn, nil)
		}
		drawn[len(drawn)-1] = append(drawn[len(drawn)-1], m[2]+" "+m[3])
	}
	there, back := framesOfCall(t)
	if diff := cmp.Diff(drawn, [][]string{there, back}); diff != "" {
		t.Errorf("doc.go draws other frames (-) than there are (+):\n%s", diff)
	}
}

// framesOfCall calls use_tool until one call was written to the upstream by the goroutine
// that reads the host, and one answer to the host by the goroutine that reads the upstream.
func framesOfCall(t *testing.T) (there, back []string) {
	toHost, toUpstream := &tracedPipe{begin: "Conn.readLines "}, &tracedPipe{begin: "Stdio.read "}
	hostReads, fromHost := toHost.open(t), &tracedPipe{}
	weRead := fromHost.open(t)

	agg, err := New(schema.Single("up", nil), Options{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	agg.fleet.Open = func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
		opts.Cork = nil // what is sent is written at once
		answers := &tracedPipe{}
		stream := struct {
			io.Reader
			*tracedPipe
		}{answers.open(t), toUpstream}
		go answerCalls(toUpstream.open(t), answers)
		return upstream.OpenStream(server, stream, opts), nil
	}
	served := make(chan error, 1)
	go func() {
		served <- agg.serveLines(context.Background(), host.NewStdio(weRead, toHost, nil), Identity{Local: true, MayLogIn: true, Persistent: true})
	}()

	answers := bufio.NewReader(hostReads)
	ask := func(id int, method, params string) {
		fmt.Fprintf(fromHost, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			if m, _ := wire.Parse(line); m.Method == "" && string(m.ID) == fmt.Sprint(id) {
				if m.Error != nil {
					t.Fatalf("%s: %s", method, m.Error)
				}
				return
			}
		}
	}
	ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}`)
	for n := 1; n <= 100 && (there == nil || back == nil); n++ {
		ask(n, "tools/call", `{"name":"use_tool","arguments":{"tool_name":"echo","tool_input":{}}}`)
		there, back = toUpstream.taken(), toHost.taken()
	}
	fromHost.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	agg.Close()
	return there, back
}

// answerCalls is an upstream with one tool.
func answerCalls(calls io.Reader, answers io.WriteCloser) {
	defer answers.Close()
	for lines := bufio.NewScanner(calls); lines.Scan(); {
		m, _ := wire.Parse(lines.Bytes())
		result, ok := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"up","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
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
	begin string

	mu     sync.Mutex
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
		p.frames = framesFrom(p.begin)
	}
	p.mu.Unlock()
	return c.RawConn.Write(f)
}

// module begins the names of all functions that are ours.
var module = strings.TrimSuffix(reflect.TypeFor[Aggregator]().PkgPath(), "aggregator")

// framesFrom returns the caller's frames from the one that begins with begin to the
// first in package wire, each with its file; nil if there is no such frame.
func framesFrom(begin string) []string {
	pcs := make([]uintptr, 100)
	var all []string // of ours, outermost last
	for frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)]); ; {
		f, more := frames.Next()
		if pkg, name, ok := strings.Cut(path.Base(f.Function), "."); ok && strings.HasPrefix(f.Function, module) {
			dir, file := path.Split(f.File)
			if pkg != "aggregator" {
				file = path.Join(path.Base(dir), file)
			}
			name, _, _ = strings.Cut(strings.NewReplacer("(*", "", ")", "").Replace(name), ".func")
			all = append(all, name+" "+file)
		}
		if !more {
			break
		}
	}
	slices.Reverse(all)
	i := slices.IndexFunc(all, func(frame string) bool { return strings.HasPrefix(frame, begin) })
	if i < 0 {
		return nil
	}
	all = all[i:]
	if end := slices.IndexFunc(all, func(frame string) bool { return strings.Contains(frame, " wire/") }); end >= 0 {
		all = all[:end+1]
	}
	return all
}
