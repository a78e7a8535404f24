package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/pipes"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// A process is a process that serves MCP on its pipes, in place and without a copy (package pipes), since
// the cost of a hosts.Host would hide the measured one; or over HTTP.
type process struct {
	serving *hosts.Host // over HTTP; nil on pipes
	cmd     *exec.Cmd
	in      *os.File
	out     *pipes.Reader
	ourOut  *os.File
	id      int
	stderr  bytes.Buffer // complete when it has ended
}

// startProcess starts a command and performs the handshake. The pipes have their default size, unless
// the process changes it.
func startProcess(argv []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, p.ourOut, err = pipes.Start(p.cmd); err != nil {
		return nil, err
	}
	p.out = pipes.NewReader(p.ourOut, false)
	if err := p.handshake(); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *process) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // it ends because its stdin did
	p.ourOut.Close()
	_, _ = p.stderr.WriteTo(os.Stderr)
}

func (p *process) handshake() error {
	if _, err := p.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); err != nil {
		return err
	}
	_, err := p.in.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return err
}

// ask sends a request and returns its answer, which is valid until the next one is read.
func (p *process) ask(method, params string) ([]byte, error) {
	p.id++
	if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", p.id, method, params); err != nil {
		return nil, err
	}
	line, err := p.answer()
	if err == nil && bytes.Contains(line[:min(len(line), 200)], []byte(`"error"`)) {
		err = fmt.Errorf("%s: %.200s", method, line)
	}
	return line, err
}

// answer returns the next line that is not a notification, which is valid until the next is read.
func (p *process) answer() ([]byte, error) {
	for {
		line, err := p.out.Next()
		if err != nil || bytes.Contains(line[:min(len(line), 64)], []byte(`"id":`)) {
			return line, err
		}
	}
}

// A sample is the result of one round of a scenario.
type sample struct {
	p50     time.Duration
	p99     time.Duration // 0 if not measured
	longest time.Duration // likewise
	rate    float64       // calls per second
	cpu     time.Duration // of the process, per call
	peak    float64       // RSS at most, in MB
	foreign float64       // share of the machine that others used meanwhile
	refused int           // calls refused because the queue of the upstream was full
}

// run measures one scenario on a process of its own.
func (v variant) run(s scenario) (sample, error) {
	if v.way != onPipes {
		return runHTTP(v, s)
	}
	p, err := startProcess(v.argv)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	calls := newCalls(v.tool, "", s)
	warm := s
	warm.calls = s.calls/10 + 1
	if _, err := p.drive(calls, warm); err != nil {
		return sample{}, err
	}
	cpu, load := procs.CPU(p.cmd.Process.Pid), loadNow(p)
	got, err := p.drive(calls, s)
	got.cpu = (procs.CPU(p.cmd.Process.Pid) - cpu) / time.Duration(s.calls)
	got.foreign = loadNow(p).foreignSince(load)
	got.peak = p.usage().peak
	return got, err
}

// calls are requests that differ only in a number, which occurs twice and always has seven digits: a
// request is made by overwriting the number of the previous one.
type calls struct {
	line []byte
	at   [2]int
}

const firstID = 1_000_000

func newCalls(tool, meta string, s scenario) *calls {
	tool = strings.Replace(tool, "echo", cmp.Or(s.how.tool, "echo"), 1)
	call, end := `{%s"name":"use_tool","arguments":{"tool_name":%q,"tool_input":{%s"text":"%d `, "}}}}\n"
	if s.how.direct {
		call, end = `{%s"name":%q,"arguments":{%s"text":"%d `, "}}}\n"
	}
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":`+call, firstID, meta, tool, s.how.members, firstID)
	number := strconv.Itoa(firstID)
	c := &calls{at: [2]int{bytes.Index(head, []byte(number)), bytes.LastIndex(head, []byte(number))}}
	c.line = append(append(head, s.content(s.size)...), end...)
	return c
}

// number returns the request with this number, which is valid until the next call.
func (c *calls) number(n int) []byte {
	var digits [7]byte
	strconv.AppendInt(digits[:0], int64(n), 10)
	for _, at := range c.at {
		copy(c.line[at:], digits[:])
	}
	return c.line
}

// drive makes calls, s.inFlight at a time, and checks that each is answered with its own text.
func (p *process) drive(calls *calls, s scenario) (sample, error) {
	sent := make([]time.Time, s.calls)
	took := make([]time.Duration, 0, s.calls)
	first := max(p.id, firstID) + 1
	p.id = first + s.calls
	slots := make(chan struct{}, s.inFlight)
	failed := make(chan error, 1)
	began := time.Now()
	go func() {
		for i := range s.calls {
			slots <- struct{}{}
			line := calls.number(first + i)
			sent[i] = time.Now()
			if _, err := p.in.Write(line); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	refused := 0
	for range s.calls {
		line, err := p.answer()
		if err != nil {
			return sample{}, err
		}
		if len(line) < 1000 && bytes.Contains(line, []byte("its queue is full, and ")) {
			refused++
			<-slots
			continue
		}
		id, text := answered(line)
		if id < first || id != text || len(line) < s.size {
			return sample{}, fmt.Errorf("a wrong answer (id %d, text of %d, %d bytes): %.200s", id, text, len(line), line)
		}
		took = append(took, time.Since(sent[id-first]))
		<-slots
	}
	total := time.Since(began)
	if err := <-failed; err != nil {
		return sample{}, err
	}
	if len(took) == 0 {
		return sample{}, errors.New("every call was refused")
	}
	slices.Sort(took)
	return sample{p50: took[len(took)/2], rate: float64(len(took)) / total.Seconds(), refused: refused}, nil
}

// answered returns the id of an answer and the number at the beginning of its text, -1 if missing.
func answered(line []byte) (id, text int) {
	return web.Number(line[:min(len(line), 64)], `"id":`), web.Number(line[:min(len(line), 200)], `"text":"`)
}
