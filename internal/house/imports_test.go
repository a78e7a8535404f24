// This file keeps the direction of imports.
package house

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
// here may import none, or all of the core if it belongs to a module.
var mayImport = map[string][]string{
	"module":                         {"internal/cli", "internal/event", "schema", "aggregator", "aggregator/surface", "transports/gateway", "transports/oauth", "transports/oauth/logins", "transports/upstream", "internal/secretref", "catalog", "internal/approval"},
	"internal/wire":                  {},
	"internal/jwt":                   {},
	"internal/membudget":             {},
	"internal/toolglob":              {"internal/lazyregexp", "internal/wire"},
	"internal/nearest":               {},
	"internal/guard":                 {"internal/guard/child"},
	"internal/guard/child":           {},
	"internal/redact":                {},
	"internal/selfloop":              {},
	"internal/atomicfile":            {},
	"internal/lazyregexp":            {},
	"internal/tokens":                {},
	"internal/seal":                  {},
	"internal/regular":               {},
	"internal/publicip":              {},
	"internal/packages":              {"internal/lazyregexp", "internal/regular"},
	"internal/keyring":               {},
	"internal/secretref":             {"internal/redact", "internal/regular"},
	"internal/sandbox":               {"internal/guard"},
	"internal/records":               {},
	"internal/records/kvtest":        {"internal/records"},
	"internal/records/memkv":         {"internal/records"},
	"internal/records/natskv":        {"internal/records", "internal/regular"},
	"internal/secrets":               {"internal/lazyregexp"},
	"internal/activity":              {"internal/event", "internal/regular", "internal/tokens", "internal/wire"},
	"internal/cli/record":            {"internal/cli/conf", "internal/cli/hint", "internal/activity", "schema"},
	"schema":                         {"schema/rate", "internal/toolglob", "internal/nearest", "schema/dotenv", "schema/hostfile", "schema/mask", "schema/reference", "schema/syntax", "internal/lazyregexp", "internal/regular", "internal/secrets"},
	"schema/hostfile":                {"internal/lazyregexp", "internal/nearest", "internal/regular", "schema/dotenv", "schema/reference", "schema/syntax"},
	"schema/rate":                    {"schema/syntax"},
	"schema/syntax":                  {"internal/lazyregexp"},
	"schema/reference":               {"internal/lazyregexp"},
	"schema/dotenv":                  {"schema/syntax"},
	"schema/mask":                    {"internal/secrets", "schema/syntax"},
	"schema/profile":                 {"internal/nearest", "internal/toolglob", "schema"},
	"internal/display":               {"internal/wire"},
	"catalog":                        {"internal/toolglob", "internal/nearest", "catalog/conform", "catalog/directname", "catalog/entry", "catalog/fit", "catalog/input", "catalog/describe", "catalog/names", "catalog/search", "catalog/typescript", "internal/pace", "schema", "schema/profile", "internal/wire", "internal/display", "internal/tokens", "internal/approval", "internal/definition"},
	"internal/pace":                  {},
	"catalog/directname":             {"internal/lazyregexp"},
	"catalog/entry":                  {"catalog/conform", "catalog/input", "catalog/search", "internal/display", "internal/pace", "internal/toolglob", "internal/wire"},
	"catalog/names":                  {"catalog/entry", "internal/display", "internal/wire"},
	"catalog/search":                 {"internal/wire", "internal/pace"},
	"catalog/conform":                {"internal/wire", "internal/display"},
	"catalog/fit":                    {},
	"catalog/input":                  {"internal/wire", "internal/display"},
	"catalog/describe":               {"catalog/search", "internal/display"},
	"catalog/typescript":             {"internal/wire", "internal/display"},
	"catalog/store":                  {"catalog", "catalog/entry", "internal/records", "schema", "internal/wire", "internal/atomicfile", "internal/regular"},
	"internal/certs":                 {"internal/regular", "schema"},
	"transports":                     {"internal/wire"},
	"transports/upstream/callheader": {"transports", "internal/wire"},
	"transports/upstream":            {"internal/certs", "internal/packages", "transports/upstream/callheader", "transports/upstream/command", "transports", "schema", "internal/wire", "internal/guard", "internal/redact", "internal/event", "transports/upstream/farside"},
	"transports/upstream/command":    {"internal/packages", "internal/redact", "transports", "schema", "internal/event", "internal/guard"},
	"transports/lines":               {},
	"transports/oauth":               {"internal/certs", "internal/jwt", "internal/publicip", "internal/guard", "transports", "transports/oauth/logins", "schema", "internal/lazyregexp", "internal/records", "internal/seal", "internal/regular"},
	"transports/oauth/logins":        {"schema", "internal/atomicfile", "internal/lazyregexp", "internal/records", "internal/seal", "internal/regular", "internal/keyring"},
	"transports/host":                {"transports", "internal/wire", "internal/event", "internal/membudget"},
	"transports/gateway":             {"transports", "transports/host", "internal/jwt", "internal/membudget", "internal/wire", "internal/seal", "internal/regular"},
	"lazy":                           {"transports", "transports/upstream", "schema"},
	"aggregator/extension":           {"catalog"},
	"aggregator/internal/work":       {"transports", "transports/host", "internal/wire"},
	"aggregator/internal/ask":        {"aggregator/internal/work", "transports", "transports/host", "transports/upstream", "schema", "internal/seal", "internal/wire"},
	"aggregator/internal/guarding":   {"catalog", "internal/approval", "schema"},
	"aggregator/internal/listing":    {"internal/approval", "aggregator/extension", "aggregator/internal/work", "lazy", "internal/records", "catalog", "catalog/names", "catalog/store", "transports/upstream", "schema", "internal/wire", "internal/definition"},
	"aggregator/internal/taskowner":  {"aggregator/internal/work", "internal/records", "internal/seal"},
	"aggregator/internal/notify":     {"internal/membudget", "aggregator/internal/work", "aggregator/internal/listing", "catalog", "transports", "internal/wire"},
	"internal/jsonquery":             {"internal/wire"},
	"aggregator/results":             {"internal/jsonquery", "catalog", "schema", "internal/display", "internal/wire", "internal/lazyregexp"},
	"aggregator/surface":             {"aggregator/results", "catalog", "schema", "internal/wire", "transports", "catalog/directname", "internal/membudget", "transports/host"},
	"aggregator/internal/direct":     {"aggregator/surface", "catalog", "schema"},
	"aggregator/internal/discover":   {"aggregator/results", "aggregator/surface", "catalog", "schema", "internal/wire", "internal/toolglob", "internal/display", "internal/tokens", "catalog/directname"},
	"internal/mcptest/viewtest":      {"catalog"},
	"aggregator/internal/exposed":    {"aggregator/internal/sessions", "aggregator/surface", "aggregator/internal/direct", "aggregator/internal/discover", "schema", "schema/profile"},
	"aggregator/internal/forward":    {"internal/event", "aggregator/internal/ask", "aggregator/internal/call", "aggregator/internal/fleet", "aggregator/internal/observe", "aggregator/internal/sessions", "aggregator/internal/task", "aggregator/internal/taskowner", "aggregator/internal/work", "catalog", "lazy", "transports", "transports/host", "transports/upstream", "internal/wire"},
	"aggregator/internal/fleet":      {"internal/approval", "schema/rate", "aggregator/extension", "internal/event", "aggregator/internal/ask", "aggregator/internal/call", "aggregator/internal/listing", "aggregator/internal/notify", "aggregator/internal/observe", "aggregator/internal/remote", "aggregator/internal/sessions", "aggregator/internal/task", "aggregator/internal/taskowner", "aggregator/internal/work", "catalog", "catalog/names", "lazy", "schema", "transports", "transports/host", "transports/upstream", "internal/wire"},
	"aggregator/internal/call":       {"internal/seal", "aggregator/internal/ask", "aggregator/internal/notify", "aggregator/internal/sessions", "aggregator/internal/work", "internal/membudget", "transports", "transports/host", "transports/upstream", "internal/wire"},
	"aggregator/internal/task":       {"catalog", "transports", "transports/upstream", "internal/wire"},
	"aggregator/internal/sessions":   {"internal/event", "aggregator/internal/ask", "aggregator/internal/notify", "aggregator/internal/task", "catalog", "schema", "transports", "internal/display", "internal/membudget", "internal/wire", "catalog/directname"},
	"aggregator/internal/observe":    {"transports", "internal/display", "internal/event", "internal/wire", "internal/definition"},
	"aggregator/internal/remote":     {"aggregator/internal/work", "lazy", "transports", "transports/upstream", "schema", "internal/guard", "internal/wire"},
	"aggregator/internal/permit":     {"aggregator/internal/ask", "internal/display", "internal/strictjson", "internal/wire", "transports", "transports/host", "internal/rule"},
	"aggregator/internal/judge":      {"aggregator/internal/ask", "aggregator/internal/call", "aggregator/internal/forward", "aggregator/internal/permit", "aggregator/internal/scope", "aggregator/surface", "aggregator/internal/task", "catalog", "internal/toolglob", "internal/wire", "lazy", "schema", "transports", "transports/host", "transports/upstream", "internal/display", "internal/rule", "internal/approval", "internal/definition"},
	"aggregator/internal/scope":      {"aggregator/internal/work", "aggregator/internal/exposed", "aggregator/internal/fleet", "aggregator/internal/listing", "aggregator/internal/notify", "aggregator/internal/sessions", "aggregator/surface", "aggregator/internal/task", "catalog", "lazy", "schema", "internal/wire", "catalog/directname", "aggregator/extension"},
	"aggregator":                     {"catalog/input", "aggregator/internal/call", "aggregator/internal/judge", "aggregator/internal/scope", "aggregator/internal/exposed", "aggregator/internal/fleet", "aggregator/internal/forward", "aggregator/internal/remote", "aggregator/internal/ask", "aggregator/internal/listing", "aggregator/internal/notify", "aggregator/internal/observe", "aggregator/internal/guarding", "aggregator/internal/permit", "aggregator/results", "aggregator/internal/sessions", "aggregator/surface", "aggregator/internal/discover", "aggregator/internal/task", "aggregator/internal/taskowner", "aggregator/internal/work", "lazy", "internal/membudget", "internal/event", "internal/records", "internal/seal", "catalog", "catalog/names", "catalog/store", "transports", "transports/upstream", "transports/host", "schema", "schema/profile", "internal/wire", "internal/redact", "aggregator/extension", "internal/rule", "internal/approval", "internal/definition"},
	"cmd/dynmcp":                     {"module", "internal/cli/runs", "modules/activity", "internal/cli", "modules/cluster", "internal/cli/conf", "internal/cli/hint", "internal/cli/login", "internal/cli/process", "internal/cli/terminal", "modules/verify", "transports", "transports/host", "internal/cli/editfile", "modules/webhook", "internal/cli/call", "internal/cli/crash", "internal/cli/described", "internal/cli/doctor", "internal/cli/entries", "internal/cli/serve", "internal/cli/sharing", "internal/cli/stdio", "internal/cli/warm", "modules/hosts", "modules/messages", "modules/openapi", "modules/pins", "modules/proxy", "modules/registry", "modules/scripts", "modules/metrics", "modules/apps", "modules/skills", "modules/credentials", "modules/secrets", "modules/browser", "modules/sandbox", "modules/ui", "modules/policy", "modules/tokens", "modules/tree"},
	"internal/cli":                   {"internal/cli/hint", "internal/cli/terminal", "internal/display", "internal/redact", "internal/nearest"},
	"internal/cli/conf":              {"internal/cli/terminal", "internal/toolglob", "internal/wire", "internal/nearest", "catalog", "catalog/store", "internal/cli", "internal/cli/hint", "internal/cli/hosts", "internal/redact", "internal/regular", "internal/secretref", "internal/selfloop", "schema", "schema/syntax", "schema/profile", "module", "internal/rule"},
	"internal/cli/editfile":          {"internal/cli", "internal/cli/hint", "internal/cli/terminal", "internal/atomicfile", "internal/regular", "schema", "module", "internal/cli/conf", "schema/syntax"},
	"internal/cli/hint":              {},
	"internal/cli/hosts":             {"schema/hostfile", "internal/cli", "transports/upstream/command", "internal/cli/hint", "internal/lazyregexp", "internal/regular", "internal/secrets", "schema", "schema/syntax", "schema/mask", "internal/packages", "module", "internal/nearest"},
	"internal/cli/login":             {"internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/terminal", "schema", "transports/oauth", "transports/oauth/logins", "transports/upstream", "module", "transports"},
	"internal/cli/process":           {"internal/regular"},
	"internal/cli/runs":              {"aggregator", "internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/hosts", "internal/cli/terminal", "internal/display", "internal/event", "internal/recording", "transports", "internal/cli/localhttp"},
	"internal/cli/run":               {"aggregator", "internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/runs", "internal/cli/selfhost", "internal/event", "schema", "transports/upstream/command", "internal/cli/localhttp", "module"},
	"internal/cli/selfhost":          {"aggregator/extension", "internal/event", "internal/display", "aggregator", "catalog", "internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/login", "internal/cli/terminal", "internal/selfloop", "internal/wire", "schema", "transports", "transports/upstream", "transports/upstream/command", "module", "transports/gateway", "aggregator/surface"},
	"internal/cli/localhttp":         {"internal/regular", "internal/cli/hint", "internal/cli/process", "transports/lines"},
	"internal/cli/terminal":          {"internal/display"},
	"internal/recording":             {"internal/regular", "internal/event", "internal/wire"},
	"packaging/packages":             {"internal/cli/terminal"},
	"internal/event":                 {"transports"},
	"internal/mcptest":               {"internal/mcptest/authserver"},
	"internal/mcptest/authserver":    {},
	"internal/mcptest/fakeauth":      {"internal/mcptest/authserver"},
	"internal/mcptest/fakemcp":       {},
	"internal/mcptest/natstest":      {"internal/mcptest"},
	"packaging/keys":                 {"schema", "schema/hostfile", "module"},
	"internal/cli/call":              {"catalog", "internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/selfhost", "internal/cli/terminal", "internal/display", "internal/toolglob", "internal/wire", "schema", "transports/upstream", "internal/rule"},
	"internal/cli/costs":             {"catalog", "internal/tokens"},
	"internal/cli/crash":             {"internal/regular"},
	"internal/cli/described":         {"catalog", "catalog/search", "internal/cli", "internal/cli/conf", "internal/cli/selfhost", "internal/cli/terminal", "internal/display", "internal/packages", "schema", "module"},
	"internal/cli/doctor":            {"catalog/store", "internal/certs", "catalog", "internal/cli", "internal/cli/conf", "internal/cli/costs", "internal/cli/crash", "internal/cli/hosts", "internal/cli/login", "internal/cli/secret", "internal/cli/selfhost", "internal/cli/terminal", "internal/display", "internal/lazyregexp", "internal/packages", "schema", "transports/oauth", "transports/upstream/command", "internal/cli/described", "transports/upstream/farside", "internal/cli/record", "internal/regular", "schema/hostfile", "module"},
	"internal/cli/entries":           {"internal/cli", "internal/cli/conf", "internal/cli/described", "internal/cli/editfile", "internal/cli/hint", "internal/cli/hosts", "internal/cli/login", "internal/cli/runs", "internal/cli/selfhost", "internal/cli/terminal", "internal/cli/warm", "internal/event", "internal/lazyregexp", "module", "schema", "schema/mask", "transports/oauth", "transports/oauth/logins", "transports", "transports/upstream/command", "internal/secretref"},
	"internal/cli/secret":            {"internal/atomicfile", "internal/cli", "internal/cli/conf", "internal/cli/editfile", "internal/cli/hint", "internal/cli/terminal", "internal/display", "internal/keyring", "internal/lazyregexp", "internal/regular", "internal/secretref", "internal/secrets", "schema", "schema/dotenv", "schema/mask", "schema/reference", "schema/syntax", "module"},
	"internal/cli/serve":             {"aggregator", "internal/cli", "internal/cli/conf", "internal/cli/crash", "internal/cli/hint", "internal/cli/localhttp", "internal/cli/login", "internal/cli/process", "internal/cli/run", "internal/cli/selfhost", "internal/cli/sharing", "internal/event", "internal/membudget", "internal/seal", "internal/selfloop", "internal/wire", "schema", "transports/gateway", "transports/host", "transports/oauth", "transports/oauth/logins", "module"},
	"internal/cli/sharing":           {"aggregator", "internal/cli/hint", "internal/cli/localhttp", "internal/regular", "schema", "transports/upstream/command"},
	"internal/cli/stdio":             {"module", "aggregator", "internal/cli", "internal/cli/conf", "internal/cli/crash", "internal/cli/entries", "internal/cli/hint", "internal/cli/run", "internal/cli/terminal", "internal/event", "schema", "transports/host", "internal/cli/selfhost", "internal/nearest"},
	"internal/cli/warm":              {"catalog", "catalog/store", "internal/cli", "internal/cli/conf", "internal/cli/hint", "internal/cli/selfhost", "internal/cli/terminal", "internal/display", "internal/wire", "schema", "schema/profile", "module", "internal/rule"},
	"transports/upstream/farside":    {"internal/guard", "internal/packages", "internal/regular", "schema", "transports/upstream/command"},
	"internal/strictjson":            {"internal/wire"},
	"internal/definition":            {"internal/wire"},
	"internal/approval":              {"internal/definition", "schema"},
	"internal/cli/changes":           {"catalog", "internal/cli/terminal", "internal/definition", "internal/display"},
	"internal/rule":                  {"schema"},
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
			if strings.HasPrefix(imported, "github.com/nats-io/") && importer != "internal/records/natskv" {
				t.Errorf("%s imports %s: only natskv knows NATS", pkg.ImportPath, imported)
			}
			ours, ok := strings.CutPrefix(imported, module)
			if ok && !slices.Contains(allowed, ours) && (known || featureOf(importer) == "") {
				t.Errorf("%s imports %s, against ARCHITECTURE.md (package listed: %t)", importer, ours, known)
			}
			if of := featureOf(ours); of != "" && importer != "cmd/dynmcp" && featureOf(importer) != of {
				t.Errorf("%s imports %s: only the table of modules names one", importer, ours)
			}
		}
	}
	if seen < len(mayImport) {
		t.Errorf("go list knows %d packages, the table %d: remove what is gone", seen, len(mayImport))
	}
}

// featureOf returns the module that a package belongs to, "" for one of the core.
func featureOf(pkg string) string {
	below, ok := strings.CutPrefix(pkg, "modules/")
	name, _, _ := strings.Cut(below, "/")
	if !ok {
		return ""
	}
	return name
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
