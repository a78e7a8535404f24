//go:build e2e

package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/browser"
	of "github.com/dynmcp/dynmcp/modules/proxy"
	"github.com/dynmcp/dynmcp/modules/tree"
	"github.com/dynmcp/dynmcp/schema"
)

const faultVariable = "DYNMCP_VERIFY_FAULT"

func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(faultVariable); ok {
		os.Unsetenv(faultVariable) // a relay behind the proxy is this program as well
		os.Exit(proxy(name, os.Args[1:]))
	}
	if len(os.Args) > 5 && os.Args[2] == "--relay" {
		if err := relay(os.Args[3], os.Args[5:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	wire.OverwriteLent()
	mcptest.Main(m)
}

// inProgram returns the context of a program with all surfaces.
func inProgram(t *testing.T) context.Context {
	return module.With(t.Context(), []module.Module{browser.Module, of.Module, tree.Module})
}

// tool returns the definition of a read-only tool.
func tool(name, properties string) string {
	return fmt.Sprintf(`{"name":%q,"annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{%s}}}`, name, properties)
}

// subject returns a server with answers that every fault changes.
func subject(t *testing.T) (*verifier, schema.Server) {
	fake := mcptest.Fake(t) // with Go's own cache
	for _, variable := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "LOCALAPPDATA", "APPDATA"} {
		t.Setenv(variable, t.TempDir())
	}
	args := []string{"-era", "both", "-bare", "-page", "3", "-instructions", "Use it.", "-tools", "1"}
	for _, definition := range []string{
		tool("echo", `"n":{"type":"integer"},"s":{"examples":["a"]}`),
		tool("raw", `"result":{"examples":[{"content":[{"type":"text","text":"9007199254740993"},{"type":"text","text":"\u00e9"}],`+
			`"structuredContent":{"n":1.0,"big":9007199254740993,"list":[1,2],"none":null},"_meta":{"x":1}}]}`),
		tool("progress", `"steps":{"type":"integer","default":3,"examples":[3]}`),
		tool("log", `"level":{"examples":["info"]}`),
		tool("big", `"bytes":{"examples":[300000]}`),
		tool("add_tool", `"name":{"examples":["later"]}`),
		`{"name":"sleep","inputSchema":{"type":"object"}}`, tool("tool_error", ""), tool("fail", ""), tool("pid", ""),
		`{"name":"noted","annotations":{"readOnlyHint":true,"idempotentHint":true},"inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
		`{"name":"poll","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`,
	} {
		args = append(args, "-tool", definition)
	}
	cfg := schema.Single(fake, args)
	v := &verifier{surfaces: comparedOf(inProgram(t)), wait: 20 * time.Second}
	v.Cfg = cfg
	return v, cfg.Servers[0]
}

// through starts a server behind the proxy with the fault called name, "" for none.
func through(name string) func(schema.Server) schema.Server {
	return func(s schema.Server) schema.Server {
		s.Args = append([]string{s.Command}, s.Args...)
		s.Command, s.Env = os.Args[0], map[string]string{faultVariable: name}
		return s
	}
}

// Without a fault nothing differs, in both eras and on all surfaces.
func TestNothingDiffers(t *testing.T) {
	v, s := subject(t)
	v.between = through("")
	r := v.server(inProgram(t), s)
	if r.failed() || len(r.Eras) != 2 {
		t.Errorf("got %+v", r)
	}
	compared := map[string]int{}
	varies := 0
	for _, row := range r.Rows {
		compared[row.What] += row.Equal
		varies += row.Varies
	}
	for _, what := range []string{handshake, lists, resources, prompts, tools, progress, bigNumber, failures, cancellation, notifications} {
		if compared[what] == 0 {
			t.Errorf("%s: nothing was compared", what)
		}
	}
	if varies < 10 { // on a busy machine another may vary, too
		t.Errorf("%d answers vary by themselves, want at least the process id on the four surfaces that add nothing, and for the host with extensions, in each era", varies)
	}
}

// What a server lists only to hosts that declare an extension is compared, by the second host.
func TestHostWithExtensions(t *testing.T) {
	v, s := subject(t)
	const shown = `{"name":"show_needs_ui","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://a"},"x":%d}}`
	s.Args = append(s.Args, "-regard", "at once", "-tool", fmt.Sprintf(shown, 1))
	v.surfaces = []string{schema.ExposeDirect}
	if r := v.server(inProgram(t), s); r.failed() {
		t.Errorf("the same server differs: %+v", r)
	}
	v.between = func(s schema.Server) schema.Server {
		s.Args = append(slices.Clone(s.Args[:len(s.Args)-1]), fmt.Sprintf(shown, 2))
		return s
	}
	r := v.server(inProgram(t), s)
	found := map[string]string{}
	for _, row := range r.Rows {
		if row.Different > 0 {
			found[row.Era+" "+row.What] += row.Host + row.Findings[0].Differences[0].Path
		}
	}
	want := map[string]string{"handshake lists": "extensions/show_needs_ui/_meta/x", "stateless lists": "extensions/show_needs_ui/_meta/x"}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}
