package verify

import (
	"regexp"
	"slices"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
)

// A design matches differences that are intended.
type design struct {
	surface, what, name string // "" matches any
	path                func() *regexp.Regexp
	how                 string                // difference.What; "" matches any
	value               func() *regexp.Regexp // difference.value; nil matches any
	reason              string
}

const (
	announces   = "dynmcp announces changes of lists, which it also finds when the server is started again"
	renames     = "a name that hosts do not accept is replaced by one that ends in a hash"
	showsSchema = "the first call of a tool that fails shows its input schema, which the model has not read"
)

var announced = lazyregexp.New(`^/(tools|resources|prompts)/listChanged$`)

// forViews matches the definition of a tool that only views of MCP Apps call.
var forViews = lazyregexp.New(`"visibility"\s*:\s*\[\s*"app"\s*\]`)

var designs = []design{
	{what: notifications, name: "logging/setLevel", path: lazyregexp.New(``),
		reason: "dynmcp answers by itself and sets the level of each server"},
	{what: handshake, name: "protocolVersion", path: lazyregexp.New(``), how: changed,
		reason: "the host speaks its version with dynmcp, and dynmcp that of the server, which is compared by itself"},
	{what: handshake, name: "capabilities", path: announced, how: added, value: lazyregexp.New(`^true$`), reason: announces},
	{what: handshake, name: "capabilities", path: announced, how: changed, value: lazyregexp.New(`^true$`), reason: announces},
	{what: handshake, name: "other members", path: lazyregexp.New(`^/serverInfo$`), how: added,
		reason: "the name of the server stands in the answer as well as in its _meta, where hosts look for it"},
	{what: lists, path: lazyregexp.New(`^/[^/]+$`), how: missing, value: lazyregexp.New(`"taskSupport"\s*:\s*"required"`),
		reason: "a tool that is only called as a task is hidden from a host that does not declare tasks"},
	{what: lists, path: lazyregexp.New(`^/[^/]+$`), how: missing, value: forViews,
		reason: "a tool that only views of MCP Apps call is hidden from a host that does not declare them"},
	{what: lists, path: lazyregexp.New(`^/([^/]{65,}|[^/]*[^/A-Za-z0-9_-][^/]*)$`), how: missing, value: lazyregexp.New(`"inputSchema"`), reason: renames},
	{what: lists, path: lazyregexp.New(`^/[A-Za-z0-9_-]{9,64}$`), how: added, value: lazyregexp.New(`"name"\s*:\s*"[A-Za-z0-9_-]*_[0-9a-f]{8}"`), reason: renames},
	{what: lists, path: lazyregexp.New(`/inputSchema/type$`), how: added, value: lazyregexp.New(`^"object"$`),
		reason: "the protocol wants a type of input schemas, which the server left out"},
	{what: lists, path: lazyregexp.New(`^/error$`), how: missing, value: lazyregexp.New(`"code"\s*:\s*-32601\b`),
		reason: "a list that the server has as a capability, and does not know, is empty"},
	{path: lazyregexp.New(`^/resultType$`), how: added,
		reason: "the stateless era wants a resultType, which the server left out"},
	{path: lazyregexp.New(`^/failed$`), how: ended,
		reason: "the server ended, and dynmcp starts it again"},
	{what: tools, path: lazyregexp.New(`^/content/\d+$`), how: added, value: lazyregexp.New(`"text":"Input schema of `),
		reason: showsSchema},
	{what: tools, path: lazyregexp.New(`^/error/message$`), how: changed, value: lazyregexp.New(`Input schema of `),
		reason: showsSchema},
	{surface: schema.ExposeProxy, path: lazyregexp.New(`^/content/\d+/annotations(/proxy(Action|Type|Path))?$`), how: added,
		reason: "the annotations of the proxy surface say where content is from"},
}

// divide returns the differences that are not intended, and the reasons of the others.
func divide(surface, what, name string, all []difference) (left []difference, reasons []string) {
	for _, d := range all {
		i := slices.IndexFunc(designs, func(w design) bool { return w.fits(surface, what, name, d) })
		if i < 0 {
			left = append(left, d)
			continue
		}
		reasons = append(reasons, designs[i].reason)
	}
	return left, reasons
}

func (w *design) fits(surface, what, name string, d difference) bool {
	is := func(wanted, got string) bool { return wanted == "" || wanted == got }
	return is(w.surface, surface) && is(w.what, what) && is(w.name, name) && is(w.how, d.What) &&
		w.path().MatchString(d.Path) && (w.value == nil || w.value().MatchString(string(d.value)))
}
