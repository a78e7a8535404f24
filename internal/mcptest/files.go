package mcptest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Config writes a config into a new directory and returns its path. A string is the text of the
// file; any other value is encoded as JSON.
func Config(t testing.TB, content any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, Raw(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A Ledger is a file to which fakes write their events; pass its Path with -ledger. For the lines see
// ledger.go and methods.go of fakemcp.
type Ledger struct {
	t    testing.TB
	Path string
}

// NewLedger returns an empty ledger.
func NewLedger(t testing.TB) Ledger {
	t.Helper()
	return Ledger{t, filepath.Join(t.TempDir(), "ledger")}
}

// Events returns the lines so far.
func (l Ledger) Events() []string {
	l.t.Helper()
	data, err := os.ReadFile(l.Path)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return slices.Collect(strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' }))
}

// Count returns how many lines are event or begin with its words: Count("call echo") counts "call
// echo n1".
func (l Ledger) Count(event string) int {
	l.t.Helper()
	n := 0
	for _, line := range l.Events() {
		if line == event || strings.HasPrefix(line, event+" ") {
			n++
		}
	}
	return n
}

// WaitFor waits until event has been written n times.
func (l Ledger) WaitFor(event string, n int) {
	l.t.Helper()
	if !eventually(watchdog, func() bool { return l.Count(event) >= n }) {
		l.t.Fatalf("%q came %d times, want %d; the ledger holds\n\t%s", event, l.Count(event), n, strings.Join(l.Events(), "\n\t"))
	}
}

// A Gate delays the answers of a fake until Open: of one that was started with -fault gate-init:PATH
// or another gate fault, or of a call of the tool sleep with {"until":PATH}.
type Gate struct {
	t    testing.TB
	Path string
}

// NewGate returns a closed gate.
func NewGate(t testing.TB) Gate {
	t.Helper()
	return Gate{t, filepath.Join(t.TempDir(), "gate")}
}

// Open releases all answers, present and future.
func (g Gate) Open() {
	g.t.Helper()
	if err := os.WriteFile(g.Path, nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}
