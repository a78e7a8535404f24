// Package dynmcp holds no code: this test keeps the direction of imports.
package dynmcp

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module begins the path of each of our packages.
const module = "github.com/dynmcp/dynmcp/"

// mayImport says which of our packages a package may import, besides those
// that every package named may import by way of them. A package that is not
// here may import none.
var mayImport = map[string][]string{
	"internal/wire":               {},
	"internal/guard":              {"internal/guard/child"},
	"internal/guard/child":        {},
	"internal/redact":             {},
	"internal/selfloop":           {},
	"internal/atomicfile":         {},
	"internal/lazyregexp":         {},
	"internal/tokens":             {},
	"internal/seal":               {},
	"internal/regular":            {},
	"internal/publicip":           {},
	"internal/keyring":            {},
	"internal/secretref":          {"internal/display", "internal/keyring", "internal/lazyregexp", "internal/redact", "internal/regular", "internal/secrets"},
	"internal/sandbox":            {"internal/guard", "internal/publicip"},
	"internal/cluster":            {"internal/kv"},
	"internal/kv":                 {},
	"internal/kv/kvtest":          {"internal/kv"},
	"internal/kv/memkv":           {"internal/kv"},
	"internal/kv/natskv":          {"internal/kv", "internal/regular"},
	"internal/cluster/configs":    {"internal/kv", "internal/seal"},
	"transports/internode":        {"transports", "internal/seal", "internal/regular"},
	"internal/secrets":            {"internal/lazyregexp"},
	"schema":                      {"schema/syntax", "internal/sandbox", "internal/lazyregexp", "internal/regular", "internal/secrets"},
	"schema/syntax":               {"internal/lazyregexp"},
	"schema/internal/gen":         {"schema"},
	"internal/display":            {"internal/wire"},
	"catalog":                     {"catalog/conform", "catalog/input", "catalog/search", "internal/pace", "schema", "internal/wire", "internal/display", "internal/lazyregexp", "internal/tokens"},
	"internal/pace":               {},
	"catalog/search":              {"internal/wire", "internal/pace"},
	"catalog/conform":             {"internal/wire", "internal/display"},
	"catalog/input":               {"internal/wire", "internal/display"},
	"catalog/store":               {"catalog", "internal/kv", "schema", "internal/wire", "internal/atomicfile", "internal/regular"},
	"transports":                  {"internal/wire"},
	"transports/upstream":         {"internal/sandbox", "transports/upstream/command", "transports", "schema", "internal/wire", "internal/guard", "internal/redact"},
	"transports/upstream/command": {"internal/redact", "transports", "schema", "internal/lazyregexp"},
	"transports/oauth":            {"internal/publicip", "transports", "schema", "internal/atomicfile", "internal/lazyregexp", "internal/kv", "internal/seal", "internal/regular", "internal/keyring"},
	"transports/host":             {"transports", "internal/wire"},
	"transports/gateway":          {"transports", "transports/host", "internal/wire", "internal/seal", "internal/regular"},
	"lazy":                        {"transports", "transports/upstream", "schema"},
	"aggregator/internal/work":    {"transports", "transports/host", "internal/wire"},
	"aggregator/internal/ask":     {"aggregator/internal/work", "transports", "transports/host", "transports/upstream", "schema", "internal/seal", "internal/wire"},
	"aggregator/internal/listing": {"aggregator/internal/work", "lazy", "internal/kv", "catalog", "catalog/store", "transports/upstream", "schema", "internal/wire"},

	"aggregator/internal/taskowner":        {"aggregator/internal/work", "internal/kv", "internal/seal"},
	"aggregator/internal/notify":           {"aggregator/internal/listing", "catalog", "transports", "internal/wire"},
	"aggregator/internal/jsonquery":        {"internal/wire"},
	"aggregator/internal/results":          {"aggregator/internal/jsonquery", "catalog", "schema", "internal/display", "internal/wire", "internal/lazyregexp"},
	"aggregator/internal/surface":          {"aggregator/internal/results", "catalog", "schema", "internal/wire", "transports"},
	"aggregator/internal/surface/browser":  {"aggregator/internal/jsonquery", "aggregator/internal/results", "aggregator/internal/surface", "catalog", "schema", "internal/wire", "internal/display"},
	"aggregator/internal/surface/direct":   {"aggregator/internal/surface", "catalog", "schema"},
	"aggregator/internal/surface/discover": {"aggregator/internal/results", "aggregator/internal/surface", "catalog", "schema", "internal/wire"},
	"aggregator/internal/surface/proxy":    {"aggregator/internal/results", "aggregator/internal/surface", "catalog", "schema", "internal/wire", "internal/display"},
	"aggregator/internal/surface/tree":     {"aggregator/internal/results", "aggregator/internal/surface", "catalog", "internal/display", "schema", "internal/wire"},
	"aggregator/internal/viewtest":         {"catalog"},

	"aggregator/internal/call":   {"aggregator/internal/ask", "aggregator/internal/work", "transports", "transports/host", "transports/upstream", "internal/wire"},
	"aggregator/internal/remote": {"aggregator/internal/work", "lazy", "transports", "transports/upstream", "schema", "internal/guard", "internal/wire"},
	"aggregator": {
		"aggregator/internal/call",
		"aggregator/internal/remote",
		"aggregator/internal/ask",
		"aggregator/internal/listing",
		"aggregator/internal/notify",
		"aggregator/internal/results",
		"aggregator/internal/surface",
		"aggregator/internal/surface/browser",
		"aggregator/internal/surface/direct",
		"aggregator/internal/surface/discover",
		"aggregator/internal/surface/proxy",
		"aggregator/internal/surface/tree",
		"aggregator/internal/taskowner",
		"aggregator/internal/work",
		"lazy",
		"internal/kv",
		"internal/guard",
		"internal/seal",
		"catalog",
		"catalog/store",
		"transports",
		"transports/upstream",
		"transports/host",
		"schema",
		"internal/wire",
		"internal/redact",
	},
	"cmd/dynmcp":                   {"internal/sandbox", "aggregator", "catalog", "catalog/store", "transports", "transports/upstream", "transports/upstream/command", "transports/host", "transports/gateway", "internal/monitor", "transports/oauth", "schema", "schema/syntax", "internal/redact", "internal/wire", "cmd/dynmcp/internal/hosts", "cmd/dynmcp/internal/hint", "cmd/dynmcp/internal/replica", "cmd/dynmcp/internal/process", "cmd/dynmcp/internal/sharing", "cmd/dynmcp/internal/terminal", "internal/selfloop", "internal/atomicfile", "internal/lazyregexp", "internal/tokens", "internal/seal", "internal/cluster", "internal/kv", "internal/cluster/configs", "internal/regular", "internal/keyring", "internal/secretref"},
	"cmd/dynmcp/internal/hint":     {},
	"cmd/dynmcp/internal/replica":  {"cmd/dynmcp/internal/hint", "aggregator", "lazy", "transports/gateway", "transports/oauth", "transports/internode", "schema", "internal/redact", "internal/guard", "internal/seal", "internal/cluster", "internal/cluster/configs", "internal/kv", "internal/kv/natskv", "internal/regular"},
	"internal/monitor":             {"aggregator", "lazy"},
	"cmd/dynmcp/internal/process":  {"internal/regular"},
	"cmd/dynmcp/internal/terminal": {},
	"cmd/dynmcp/internal/sharing":  {"cmd/dynmcp/internal/hint", "aggregator", "schema", "transports", "transports/upstream/command", "internal/wire", "internal/regular"},
	"cmd/dynmcp/internal/hosts":    {"schema", "schema/syntax", "internal/secrets", "internal/lazyregexp", "internal/regular"},
	"internal/mcptest":             {"internal/mcptest/authserver"},
	"internal/mcptest/authserver":  {},
	"internal/mcptest/fakeauth":    {"internal/mcptest/authserver"},
	"internal/mcptest/fakemcp":     {},
	"internal/mcptest/natstest":    {"internal/mcptest"},
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
		importer := strings.TrimPrefix(pkg.ImportPath, module)
		allowed, known := mayImport[importer]
		for _, imported := range pkg.Imports {
			if strings.HasPrefix(imported, "github.com/nats-io/") && importer != "internal/kv/natskv" {
				t.Errorf("%s imports %s: only natskv knows NATS", pkg.ImportPath, imported)
			}
			ours, ok := strings.CutPrefix(imported, module)
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, against ARCHITECTURE.md (package listed: %t)", importer, ours, known)
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
