package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Surface is the surface script, which is used together with others: discover shows the tools for scripts.
var Surface = surface.Kind{Name: schema.ExposeScript, Start: start}

// name is that of the tool.
const name = "run_script"

// Surface returns the surface for a config.
func (env *env) Surface(cfg *schema.Config) surface.Surface {
	may := cfg.ScriptLimits()
	allowed := allowedBy(may.Tools)
	return surface.Surface{Tools: []surface.Tool{{
		Name: name,
		Definitions: func(v *catalog.View, _ int) []json.RawMessage {
			return []json.RawMessage{surface.Define(name, description(v, may.Tools, allowed), input, annotations(may.Tools))}
		},
		Answer: func(c *surface.Call) { env.answer(c, may) },
	}}}
}

// allowedBy returns the filter of the tools that scripts may call. Without patterns it allows none.
func allowedBy(patterns []string) toolglob.Filter {
	if len(patterns) == 0 {
		patterns = []string{"!*"}
	}
	return toolglob.NewFilter(patterns)
}

const (
	about = "Runs JavaScript, the body of an async function: for several calls in one step, or when a result is large and little of it matters. " +
		"Only what it returns or prints is shown.\n" +
		`- await tools.server.tool({…}), tools["a-server"]["a-tool"]({…}) or call("server/tool", {…}): the structured content, else the text, parsed if it is a JSON object or array. ` +
		"call.raw: the whole result. A failed call throws.\n" +
		`- await search("words"), await describe("server/tool"): tools and their types. await resource(uri). console.log(…).` + "\n" +
		"No import, require or fetch.\n" +
		"It may call %s; others by use_tool. Servers start when they are used.\nExample: %s"

	input = `{"type":"object","properties":{` +
		`"code":{"type":"string","description":"The script, such as: return (await search(\"read a file\")).length"},` +
		`"args":{"type":"array","items":{"type":"string"},"description":"What the script has as args."}},` +
		`"required":["code"],"additionalProperties":false}`
)

// Limits of the configurable parts, so that a description has at most 900 characters.
const (
	maxPatterns = 90
	maxExample  = 130
)

func description(v *catalog.View, patterns []string, allowed toolglob.Filter) string {
	return fmt.Sprintf(about, display.Cut(display.Fold(cmp.Or(strings.Join(patterns, ", "), "nothing")), maxPatterns), example(v, allowed))
}

// maxTools is how many tools are considered for an example.
const maxTools = 500

// example returns a script that works with the present servers: it calls a read-only tool without
// required arguments, or searches.
func example(v *catalog.View, allowed toolglob.Filter) string {
	all := v.Tools()
	for _, t := range all[:min(len(all), maxTools)] {
		if t.Access != toolglob.ReadOnly || t.OnlyTask || !allowed.Passes(t.Server+"/"+t.Upstream, t.Access) || required(t) {
			continue
		}
		text := fmt.Sprintf("const r = await tools%s%s({}); return JSON.stringify(r).slice(0, 200)", member(t.Server), member(t.Name[strings.IndexByte(t.Name, '/')+1:]))
		if len(text) <= maxExample {
			return text
		}
	}
	return `const found = await search("read a file"); return found.slice(0, 200)`
}

// required reports whether a tool needs arguments.
func required(t *catalog.Tool) bool {
	for range wire.Elements(wire.Get(t.InputSchema, "required")) {
		return true
	}
	return false
}

var identifier = lazyregexp.New(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// member returns the expression for a member of an object.
func member(name string) string {
	if identifier().MatchString(name) {
		return "." + name
	}
	return "[" + string(wire.Quote(name)) + "]"
}

// annotations are derived from the tools that scripts may call.
func annotations(patterns []string) string {
	only := func(classes ...string) bool {
		some := false
		for _, p := range patterns {
			if strings.HasPrefix(p, "!") {
				continue
			}
			if some = true; !slices.Contains(classes, p) {
				return false
			}
		}
		return some
	}
	switch {
	case only("@readonly"):
		return `{"title":"Run a script that only reads","readOnlyHint":true}`
	case only("@readonly", "@write"):
		return `{"title":"Run a script that may change things","readOnlyHint":false,"destructiveHint":false}`
	}
	return `{"title":"Run a script","readOnlyHint":false,"destructiveHint":true}`
}

// answer answers run_script.
func (env *env) answer(c *surface.Call, may schema.Scripts) {
	in := surface.ReadArguments(c.Arguments, "code", "args")
	source, args := in.Text("code"), in.Texts("args")
	if in.Errs == nil && strings.TrimSpace(source) == "" {
		in.Fail(`"code" is missing: write the body of an async function in JavaScript`)
	}
	if err := in.Err(); err != nil {
		c.InvalidArguments(err)
		return
	}
	env.start(&caller{Long: c.Long()}, may, source, args)
}
