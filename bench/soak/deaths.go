package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// dyingHosts is the number of dynmcp with a server that dies in every call.
const dyingHosts = 4

// deaths makes calls to servers that record the call and die before they answer. Each
// call must have run once, and its outcome must be reported as unknown.
func (s *soak) deaths(n int) error {
	began := time.Now()
	var mu sync.Mutex
	var failed error
	var all ledger
	var trials sync.WaitGroup
	for i := range dyingHosts {
		trials.Go(func() {
			l, err := s.dies(i*n/dyingHosts, (i+1)*n/dyingHosts)
			mu.Lock()
			defer mu.Unlock()
			all.add(l)
			if err != nil {
				failed = err
			}
		})
	}
	trials.Wait()
	fmt.Printf("deaths: %d calls in %v: %d ran once, %d ran again, %d did not run; said to be: %v\n",
		n, rounded(time.Since(began)), all.once, all.again, all.never, all.said)
	if failed != nil {
		return failed
	}
	s.Must("calls that ran again", all.again, 0)
	s.Must("calls that are not in the ledger", all.never, 0)
	s.Must("calls that ran and are said to be not sent", all.denied, 0)
	s.Must("calls whose outcome is said to be unknown", all.said["unknown"], n)
	return nil
}

// A ledger counts calls by what the server recorded and by the outcome that dynmcp reported.
type ledger struct {
	once, again, never, denied int
	said                       map[string]int
}

func (l *ledger) add(o ledger) {
	l.once, l.again, l.never, l.denied = l.once+o.once, l.again+o.again, l.never+o.never, l.denied+o.denied
	if l.said == nil {
		l.said = map[string]int{}
	}
	for outcome, n := range o.said {
		l.said[outcome] += n
	}
}

// dies makes the calls with numbers from first up to but not including end. A load_mcp
// before each call restarts the crashed server at once.
func (s *soak) dies(first, end int) (ledger, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("deaths-%d", first))
	h, err := s.start(entry{name: "dies", args: []string{"-fault", "crash-call", "-ledger", path},
		fields: map[string]any{"description": "Dies in every call"}})
	if err != nil {
		return ledger{}, err
	}
	defer h.End()
	said := map[string]string{} // outcome by nonce
	for id := first; id < end; id++ {
		if err := h.succeed("dies loads", "load_mcp", load("dies"), hosts.NoOther); err != nil {
			return ledger{}, err
		}
		h.ask(`"dies"`, "use_tool", use("dies/echo", fmt.Sprintf(`{"nonce":"%d"}`, id)))
		a, err := h.Await("dies", hosts.NoOther)
		if err != nil {
			return ledger{}, err
		}
		outcome := web.Outcome(a.Line)
		if outcome != "unknown" {
			fmt.Printf("  call %d: %.500s\n", id, a.Line)
		}
		said[fmt.Sprint(id)] = outcome
	}
	if err := h.Stop(); err != nil {
		return ledger{}, err
	}
	text, err := os.ReadFile(path)
	return audit(string(text), said), err
}

// audit compares the calls that a server recorded with the outcomes that dynmcp reported.
func audit(text string, said map[string]string) ledger {
	ran := map[string]int{}
	for line := range strings.Lines(text) {
		if nonce, ok := strings.CutPrefix(strings.TrimSpace(line), "call echo "); ok {
			ran[nonce]++
		}
	}
	l := ledger{said: map[string]int{}}
	for nonce, outcome := range said {
		l.said[outcome]++
		switch ran[nonce] {
		case 0:
			l.never++
		case 1:
			l.once++
		default:
			l.again++
		}
		if ran[nonce] > 0 && outcome == "not_sent" {
			l.denied++
		}
	}
	return l
}
