package mcptest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Config writes a configuration file into a fresh directory and returns its path.
// A string is the file's text, anything else is encoded as JSON.
func Config(t testing.TB, content any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, Raw(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A Ledger is a file in which fakes write what happened to them; pass its Path
// with -ledger. fakemcp's ledger.go and methods.go say what the lines are.
type Ledger struct {
	t    testing.TB
	Path string
}

// NewLedger makes an empty ledger.
func NewLedger(t testing.TB) Ledger {
	t.Helper()
	return Ledger{t, filepath.Join(t.TempDir(), "ledger")}
}

// Events are the lines so far.
func (l Ledger) Events() []string {
	l.t.Helper()
	data, err := os.ReadFile(l.Path)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return slices.Collect(strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' }))
}

// Count tells how many lines are event or begin with its words: Count("call echo")
// counts "call echo n1".
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

// A Gate holds back a fake that was started with -fault gate-init:PATH or another
// of the gate faults, or a call of the tool sleep with {"until":PATH}, until Open.
type Gate struct {
	t    testing.TB
	Path string
}

// NewGate makes a closed gate.
func NewGate(t testing.TB) Gate {
	t.Helper()
	return Gate{t, filepath.Join(t.TempDir(), "gate")}
}

// Open lets everything through, now and later.
func (g Gate) Open() {
	g.t.Helper()
	if err := os.WriteFile(g.Path, nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}
