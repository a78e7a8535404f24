// Package dynmcp holds no code: this test keeps the direction of imports.
package dynmcp

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport says which of our packages a package may import, besides those
// that every package named may import by way of them. A package that is not
// here may import none.
var mayImport = map[string][]string{
	"dynmcp/internal/wire":               {},
	"dynmcp/internal/guard":              {"dynmcp/internal/guard/process"},
	"dynmcp/internal/guard/process":      {},
	"dynmcp/internal/redact":             {},
	"dynmcp/internal/lineage":            {},
	"dynmcp/internal/atomicfile":         {},
	"dynmcp/internal/lazyregexp":         {},
	"dynmcp/internal/estimate":           {},
	"dynmcp/internal/seal":               {},
	"dynmcp/cluster":                     {"dynmcp/cluster/kv"},
	"dynmcp/cluster/kv":                  {},
	"dynmcp/cluster/kv/kvtest":           {"dynmcp/cluster/kv"},
	"dynmcp/cluster/kv/memkv":            {"dynmcp/cluster/kv"},
	"dynmcp/cluster/kv/natskv":           {"dynmcp/cluster/kv"},
	"dynmcp/cluster/configs":             {"dynmcp/cluster/kv", "dynmcp/internal/seal"},
	"dynmcp/cluster/replica":             {"dynmcp/transports", "dynmcp/internal/seal"},
	"dynmcp/schema":                      {"dynmcp/internal/lazyregexp"},
	"dynmcp/schema/internal/gen":         {"dynmcp/schema"},
	"dynmcp/catalog":                     {"dynmcp/schema", "dynmcp/internal/wire", "dynmcp/internal/lazyregexp", "dynmcp/internal/estimate"},
	"dynmcp/catalog/store":               {"dynmcp/catalog", "dynmcp/cluster/kv", "dynmcp/schema", "dynmcp/internal/wire", "dynmcp/internal/atomicfile"},
	"dynmcp/transports":                  {"dynmcp/internal/wire"},
	"dynmcp/transports/upstream":         {"dynmcp/transports", "dynmcp/schema", "dynmcp/internal/wire", "dynmcp/internal/guard", "dynmcp/internal/redact", "dynmcp/internal/lazyregexp"},
	"dynmcp/transports/oauth":            {"dynmcp/transports", "dynmcp/schema", "dynmcp/internal/atomicfile", "dynmcp/internal/lazyregexp", "dynmcp/cluster/kv", "dynmcp/internal/seal"},
	"dynmcp/transports/host":             {"dynmcp/transports", "dynmcp/internal/wire"},
	"dynmcp/transports/gateway":          {"dynmcp/transports", "dynmcp/transports/host", "dynmcp/internal/wire", "dynmcp/internal/seal"},
	"dynmcp/lazy":                        {"dynmcp/transports", "dynmcp/transports/upstream", "dynmcp/schema"},
	"dynmcp/aggregator":                  {"dynmcp/lazy", "dynmcp/cluster/kv", "dynmcp/internal/guard", "dynmcp/internal/seal", "dynmcp/catalog", "dynmcp/catalog/store", "dynmcp/transports", "dynmcp/transports/upstream", "dynmcp/transports/host", "dynmcp/schema", "dynmcp/internal/wire", "dynmcp/internal/redact", "dynmcp/internal/lazyregexp"},
	"dynmcp/cmd/dynmcp":                  {"dynmcp/aggregator", "dynmcp/lazy", "dynmcp/catalog", "dynmcp/catalog/store", "dynmcp/transports", "dynmcp/transports/upstream", "dynmcp/transports/host", "dynmcp/transports/gateway", "dynmcp/monitor", "dynmcp/transports/oauth", "dynmcp/schema", "dynmcp/internal/redact", "dynmcp/internal/wire", "dynmcp/cmd/dynmcp/internal/hosts", "dynmcp/internal/lineage", "dynmcp/internal/atomicfile", "dynmcp/internal/lazyregexp", "dynmcp/internal/estimate", "dynmcp/internal/guard", "dynmcp/internal/seal", "dynmcp/cluster", "dynmcp/cluster/kv", "dynmcp/cluster/kv/natskv", "dynmcp/cluster/configs", "dynmcp/cluster/replica"},
	"dynmcp/monitor":                     {"dynmcp/aggregator", "dynmcp/lazy"},
	"dynmcp/cmd/dynmcp/internal/hosts":   {"dynmcp/schema", "dynmcp/internal/lazyregexp"},
	"dynmcp/bench/internal/pipes":        {},
	"dynmcp/bench/internal/echo":         {},
	"dynmcp/bench/internal/stacks":       {},
	"dynmcp/bench/internal/web":          {},
	"dynmcp/bench/internal/ledger":       {},
	"dynmcp/bench/internal/procs":        {},
	"dynmcp/bench/internal/programs":     {},
	"dynmcp/bench/internal/verdict":      {},
	"dynmcp/bench":                       {"dynmcp/bench/internal/pipes", "dynmcp/bench/internal/procs", "dynmcp/bench/internal/programs", "dynmcp/bench/internal/stacks", "dynmcp/bench/internal/web"},
	"dynmcp/bench/frontpump":             {"dynmcp/bench/internal/pipes", "dynmcp/bench/internal/echo"},
	"dynmcp/bench/pump":                  {"dynmcp/bench/internal/pipes"},
	"dynmcp/bench/upstream":              {"dynmcp/bench/internal/pipes", "dynmcp/bench/internal/echo"},
	"dynmcp/bench/httpupstream":          {"dynmcp/bench/internal/echo"},
	"dynmcp/bench/cluster":               {"dynmcp/bench/internal/web", "dynmcp/bench/internal/ledger", "dynmcp/bench/internal/procs", "dynmcp/bench/internal/verdict", "dynmcp/cluster/kv", "dynmcp/cluster/kv/natskv", "dynmcp/internal/mcptest/authserver"},
	"dynmcp/bench/cluster/upstream":      {"dynmcp/bench/internal/ledger"},
	"dynmcp/bench/soak":                  {"dynmcp/bench/internal/web", "dynmcp/bench/internal/stacks", "dynmcp/bench/internal/procs", "dynmcp/bench/internal/programs", "dynmcp/bench/internal/verdict", "dynmcp/internal/mcptest/authserver"},
	"dynmcp/bench/scale":                 {"dynmcp/cluster", "dynmcp/cluster/kv", "dynmcp/cluster/kv/memkv"},
	"dynmcp/bench/savings":               {"dynmcp/bench/internal/procs", "dynmcp/bench/internal/programs", "dynmcp/schema", "dynmcp/transports/upstream"},
	"dynmcp/bench/tokens":                {"dynmcp/bench/internal/programs"},
	"dynmcp/internal/mcptest":            {"dynmcp/internal/mcptest/authserver"},
	"dynmcp/internal/mcptest/authserver": {},
	"dynmcp/internal/mcptest/fakeauth":   {"dynmcp/internal/mcptest/authserver"},
	"dynmcp/internal/mcptest/fakemcp":    {},
}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); seen++ {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		allowed, known := mayImport[pkg.ImportPath]
		for _, imported := range pkg.Imports {
			if strings.HasPrefix(imported, "github.com/nats-io/") && pkg.ImportPath != "dynmcp/cluster/kv/natskv" {
				t.Errorf("%s imports %s: only natskv knows NATS", pkg.ImportPath, imported)
			}
			if strings.HasPrefix(imported, "dynmcp/") && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s, against ARCHITECTURE.md (package listed: %t)", pkg.ImportPath, imported, known)
			}
		}
	}
	if seen < len(mayImport) {
		t.Errorf("go list knows %d packages, the table %d: remove what is gone", seen, len(mayImport))
	}
}

// Every start pays for what packages do when they are initialised, whatever it is
// for. This one makes tables for 30 ms and 3 MB.
func TestNothingIsLinkedThatSlowsStarts(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/dynmcp").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if slices.Contains(strings.Fields(string(out)), "github.com/mattn/go-runewidth") {
		t.Error("go-runewidth is linked; go mod why -m tells by way of what")
	}
}
