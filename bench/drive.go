package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A process is one that answers MCP on its pipes.
type process struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *bufio.Reader
	id     int
	stderr bytes.Buffer // to be read when it has ended
}

func startProcess(argv []string) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: ourOut, out: bufio.NewReaderSize(ourIn, 1<<20)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, &p.stderr
	err = cmd.Start()
	theirIn.Close()
	theirOut.Close()
	return p, err
}

func (p *process) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // it ends because its stdin did
	_, _ = p.stderr.WriteTo(os.Stderr)
}

func (p *process) handshake() error {
	if err := p.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); err != nil {
		return err
	}
	_, err := p.in.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return err
}

// ask sends a request and waits for its answer; notifications are passed over.
func (p *process) ask(method, params string) error {
	p.id++
	id := `"id":` + strconv.Itoa(p.id)
	if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0",%s,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		return err
	}
	for {
		line, err := p.line()
		switch {
		case err != nil:
			return err
		case bytes.Contains(line, []byte(`"error"`)):
			return fmt.Errorf("%s: %.200s", method, line)
		case bytes.Contains(line, []byte(id)):
			return nil
		}
	}
}

func (p *process) line() ([]byte, error) {
	var line []byte
	for {
		part, err := p.out.ReadSlice('\n')
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// answer returns the next line that is no notification.
func (p *process) answer() ([]byte, error) {
	for {
		line, err := p.line()
		if err != nil || bytes.Contains(line[:min(len(line), 64)], []byte(`"id":`)) {
			return line, err
		}
	}
}

// A sample is what one round of one scenario measured.
type sample struct {
	p50  time.Duration
	rate float64       // calls per second
	cpu  time.Duration // of the process, per call
}

// run measures one scenario on a process of its own.
func run(v variant, s scenario) (sample, error) {
	p, err := startProcess(v.argv)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	if err := p.handshake(); err != nil {
		return sample{}, err
	}
	warm := s
	warm.calls = s.calls/10 + 1
	if _, err := p.drive(v.tool, warm); err != nil {
		return sample{}, err
	}
	before := p.usage().cpu
	got, err := p.drive(v.tool, s)
	got.cpu = (p.usage().cpu - before) / time.Duration(s.calls)
	return got, err
}

// drive makes calls, so many in flight, and checks that each is answered with
// its own text.
func (p *process) drive(tool string, s scenario) (sample, error) {
	sent := make([]time.Time, s.calls)
	took := make([]time.Duration, 0, s.calls)
	first := p.id + 1
	p.id += s.calls
	pad := strings.Repeat("x", s.size)
	slots := make(chan struct{}, s.inFlight)
	failed := make(chan error, 1)
	began := time.Now()
	go func() {
		var buf []byte
		for i := range s.calls {
			slots <- struct{}{}
			buf = fmt.Appendf(buf[:0], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"%s","tool_input":{"text":"%d %s"}}}}`+"\n",
				first+i, tool, first+i, pad)
			sent[i] = time.Now()
			if _, err := p.in.Write(buf); err != nil {
				failed <- err
				return
			}
		}
	}()
	for range s.calls {
		line, err := p.answer()
		if err != nil {
			return sample{}, err
		}
		id, text, err := answered(line)
		if err != nil || id != text {
			return sample{}, fmt.Errorf("a wrong answer (id %d, text of %d): %.200s", id, text, line)
		}
		took = append(took, time.Since(sent[id-first]))
		<-slots
	}
	total := time.Since(began)
	select {
	case err := <-failed:
		return sample{}, err
	default:
	}
	slices.Sort(took)
	return sample{p50: took[len(took)/2], rate: float64(s.calls) / total.Seconds()}, nil
}

// answered returns the id of an answer and the number its text begins with.
func answered(line []byte) (id, text int, err error) {
	if _, rest, ok := bytes.Cut(line[:min(len(line), 64)], []byte(`"id":`)); ok {
		id, err = leadingInt(rest)
	}
	if i := bytes.Index(line, []byte(`"text":"`)); i >= 0 && err == nil {
		text, err = leadingInt(line[i+len(`"text":"`):])
	}
	return id, text, err
}

func leadingInt(b []byte) (int, error) {
	end := 0
	for end < len(b) && '0' <= b[end] && b[end] <= '9' {
		end++
	}
	return strconv.Atoi(string(b[:end]))
}
