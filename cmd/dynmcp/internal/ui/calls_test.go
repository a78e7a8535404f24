package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
)

// A poll for calls reads no config that the last poll for places has read.
func TestCallsReadNoConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	config := filepath.Join(dir, "c.json")
	if err := os.WriteFile(config, []byte(`{"mcp":{"a":{"command":"none"}},"activity":{"dir":"record"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{from: &conf.Flags{Config: config}, calls: map[string]*journal{}}
	if _, err := s.callsSince(t.Context(), callsQuery{Place: "config"}); err != nil {
		t.Fatal("a place that was not read yet:", err)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if _, err := s.callsSince(t.Context(), callsQuery{Place: "config"}); err != nil {
		t.Error("the config is read again:", err)
	}
	if _, err := s.callsSince(t.Context(), callsQuery{Place: "1"}); err == nil {
		t.Error("a run that is gone has calls")
	}
}
