//go:build e2e

package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

// A published example that is broken anywhere runs nothing but the runners of packages.
func TestBrokenExamples(t *testing.T) {
	texts, err := mcptest.PublishedServers()
	if err != nil {
		t.Fatal(err)
	}
	r := mcptest.ServeRegistry(t)
	var now []byte
	r.Handle("/v0.1/servers/io.example/x/versions/latest", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"server":%s}`, now) })
	c := &api.Client{Address: r.URL}
	refused, ran := 0, 0
	for _, text := range texts {
		if err := mcptest.CheckServerJSON(text); err != nil {
			t.Errorf("a published example is refused by the published schema: %v", err)
		}
		var example map[string]any
		if err := json.Unmarshal([]byte(text), &example); err != nil {
			t.Fatal(err)
		}
		example["name"] = "io.example/x"
		for _, member := range []string{"_meta", "repository", "icons"} { // not read
			delete(example, member)
		}
		broken(example, func() {
			if now, err = json.Marshal(example); err != nil {
				t.Fatal(err)
			}
			if mcptest.CheckServerJSON(string(now)) == nil {
				return
			}
			refused++
			s, err := c.Get(t.Context(), "io.example/x", "")
			if err != nil {
				return
			}
			for _, o := range s.Options(anyProgram) {
				entry, err := o.Build("x", nil)
				if o.Missing != "" || err != nil {
					continue
				}
				ran++
				if !slices.Contains([]string{"npx", "uvx", "docker", "podman"}, entry.Command) && !strings.HasPrefix(entry.URL, "https://") {
					t.Errorf("%s runs %q %q", now, entry.Command, entry.URL)
				}
			}
		})
	}
	if refused < 1000 || ran == 0 {
		t.Errorf("%d broken examples, %d of them run", refused, ran)
	}
}

// broken calls f for each part of a JSON value, left out or replaced by values of other types.
func broken(value any, f func()) {
	try := func(set func(any), old any) {
		for _, wrong := range []any{nil, 7.0, "--x", []any{"sh"}, map[string]any{"sh": "-c"}} {
			set(wrong)
			f()
		}
		set(old)
		broken(old, f)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			old := value[name]
			delete(value, name)
			f()
			try(func(v any) { value[name] = v }, old)
		}
	case []any:
		for i, old := range value {
			try(func(v any) { value[i] = v }, old)
		}
	}
}
