package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/ledger"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// dyingHosts is the number of dynmcp with a server that dies in every call.
const dyingHosts = 4

// deaths makes calls to servers that record the call and die before they answer. Each
// call must have run once, and its outcome must be reported as unknown.
func (s *soak) deaths(n int) error {
	began := time.Now()
	var all ledger.Account
	var group errgroup.Group
	var mu sync.Mutex // of all
	for i := range dyingHosts {
		group.Go(func() error {
			said, text, err := s.dies(i*n/dyingHosts, (i+1)*n/dyingHosts)
			mu.Lock()
			defer mu.Unlock()
			audit(&all, text, said)
			return err
		})
	}
	err := group.Wait()
	fmt.Printf("deaths: %d calls in %v: %d ran once, %d ran again, %d did not run; said to be: %v\n",
		n, rounded(time.Since(began)), all.Once, all.Again, all.Never, all.Failed)
	if err != nil {
		return err
	}
	all.Judge(&s.Verdict)
	s.Must("calls whose outcome is said to be unknown", all.Failed["unknown"], n)
	return nil
}

// dies makes the calls with numbers from first up to but not including end. A load_mcp
// before each call restarts the crashed server at once. It returns the outcomes that dynmcp
// reported, by nonce, and the ledger of the server.
func (s *soak) dies(first, end int) (said map[string]string, text string, err error) {
	path := filepath.Join(s.dir, fmt.Sprintf("deaths-%d", first))
	h, err := s.start(entry{name: "dies", args: []string{"-fault", "crash-call", "-ledger", path},
		fields: map[string]any{"description": "Dies in every call"}})
	if err != nil {
		return nil, "", err
	}
	defer h.End()
	said = map[string]string{}
	for id := first; id < end; id++ {
		if err := h.succeed("dies loads", "load_mcp", load("dies"), hosts.NoOther); err != nil {
			return nil, "", err
		}
		h.ask(`"dies"`, "use_tool", use("dies/echo", fmt.Sprintf(`{"nonce":"%d"}`, id)))
		a, err := h.Await("dies", hosts.NoOther)
		if err != nil {
			return nil, "", err
		}
		outcome := web.Outcome(a.Line)
		if outcome != "unknown" {
			fmt.Printf("  call %d: %.500s\n", id, a.Line)
		}
		said[fmt.Sprint(id)] = outcome
	}
	if err := h.Stop(); err != nil {
		return nil, "", err
	}
	recorded, err := os.ReadFile(path)
	return said, string(recorded), err
}

// audit adds the calls that a server recorded, and the outcomes that dynmcp reported.
func audit(to *ledger.Account, text string, said map[string]string) {
	ran := map[string]int{}
	for line := range strings.Lines(text) {
		if nonce, ok := strings.CutPrefix(strings.TrimSpace(line), "call echo "); ok {
			ran[nonce]++
		}
	}
	for nonce, outcome := range said {
		to.Add(ran[nonce], true, outcome)
	}
}
