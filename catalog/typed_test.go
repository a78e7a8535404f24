package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// kinds are the four lists: a good entry with every known member, and what hosts read of a
// listing.
var kinds = map[string]struct {
	good   string
	list   func(*Listing) *[]json.RawMessage
	listed func(*View) []json.RawMessage
	typed  func() any
}{
	"tool": {
		`{"name":"GOOD","title":"T","description":"D","x":[1.0],"inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"x":1},
			"outputSchema":{"type":"object","properties":{"a":{}},"required":["a"]},"annotations":{"title":"T","readOnlyHint":true,"destructiveHint":true,
			"idempotentHint":true,"openWorldHint":true,"x":1},"icons":[{"src":"s","mimeType":"image/png","sizes":["1x1"],"theme":"dark","x":1}],
			"execution":{"taskSupport":"optional"},"_meta":{"x":null}}`,
		func(l *Listing) *[]json.RawMessage { return &l.Tools },
		func(v *View) (all []json.RawMessage) {
			for _, t := range v.Listed() {
				all = append(all, t.define(t.typed, t.Upstream))
			}
			return all
		},
		func() any { return new(mcp.Tool) },
	},
	"prompt": {
		`{"name":"GOOD","title":"T","description":"D","x":[1.0],"arguments":[{"name":"a","title":"T","description":"D","required":true,"x":1}],
			"icons":[{"src":"s","mimeType":"image/png","sizes":["1x1"],"theme":"dark"}],"_meta":{"x":null}}`,
		func(l *Listing) *[]json.RawMessage { return &l.Prompts }, (*View).Prompts,
		func() any { return new(mcp.Prompt) },
	},
	"resource": {
		`{"uri":"GOOD","name":"n","title":"T","description":"D","x":[1.0],"mimeType":"a/b","size":12,
			"annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58.5+02:00","x":1},
			"icons":[{"src":"s","mimeType":"image/png","sizes":["1x1"],"theme":"dark"}],"_meta":{"x":null}}`,
		func(l *Listing) *[]json.RawMessage { return &l.Resources }, (*View).Resources,
		func() any { return new(mcp.Resource) },
	},
	"resource template": {
		`{"uriTemplate":"GOOD","name":"n","title":"T","description":"D","x":[1.0],"mimeType":"a/b",
			"annotations":{"audience":["user"],"priority":1,"lastModified":"2025-01-12T15:00:58Z","x":1},
			"icons":[{"src":"s","mimeType":"image/png","sizes":["1x1"],"theme":"dark"}],"_meta":{"x":null}}`,
		func(l *Listing) *[]json.RawMessage { return &l.Templates }, (*View).Templates,
		func() any { return new(mcp.ResourceTemplate) },
	},
}

// A known member of a wrong JSON type removes its entry and no other. The warning names the
// member.
func TestMalformedEntriesAreLeftOut(t *testing.T) {
	t.Parallel()
	const str, number, boolean, arr, obj, null = `"x"`, `5`, `true`, `[]`, `{}`, `null`
	notText := []string{number, boolean, arr, obj}
	notBool := []string{str, number, arr, obj}
	notArray := []string{str, number, boolean, obj}
	notObject := []string{str, number, boolean, arr}
	icons := map[string][]string{
		"title": notText, "description": notText, "_meta": notObject, "icons": notArray, "icons[0]": append(notObject, null),
		"icons[0].src": append(notText, null), "icons[0].mimeType": notText, "icons[0].sizes": notArray, "icons[0].sizes[0]": append(notText, null),
		"icons[0].theme": append(notText, str),
	}
	content := map[string][]string{
		"name": append(notText, null), "mimeType": notText, "annotations": notObject, "annotations.audience": notArray,
		"annotations.audience[0]": append(notText, str, null), "annotations.priority": {str, boolean, arr, obj, "5", "-0.1", "1e400"},
		"annotations.lastModified": append(notText, str, `"2025-01-12"`, `"2025-01-12T15:00:58"`),
	}
	schema := func(name string) map[string][]string {
		return map[string][]string{
			name: notObject, name + ".type": {number, boolean, obj, null}, name + ".properties": notObject, name + ".properties.a": {str, number, arr, null},
			name + ".required": notArray, name + ".required[0]": append(notText, null),
		}
	}
	for kind, groups := range map[string][]map[string][]string{
		"tool": {icons, schema("inputSchema"), schema("outputSchema"), {
			"name": append(notText, null), "inputSchema": {null}, "inputSchema.type": {str, arr, `"string"`, `["object"]`},
			"annotations": notObject, "annotations.title": notText, "annotations.readOnlyHint": notBool, "annotations.destructiveHint": notBool,
			"annotations.idempotentHint": notBool, "annotations.openWorldHint": notBool, "execution": notObject, "execution.taskSupport": append(notText, str),
		}},
		"prompt": {icons, {
			"name": append(notText, null), "arguments": notArray, "arguments[0]": append(notObject, null), "arguments[0].name": append(notText, null),
			"arguments[0].title": notText, "arguments[0].description": notText, "arguments[0].required": notBool,
		}},
		"resource":          {icons, content, {"uri": append(notText, null), "size": {str, boolean, arr, obj}}},
		"resource template": {icons, content, {"uriTemplate": append(notText, null)}},
	} {
		k := kinds[kind]
		for _, group := range groups {
			for path, values := range group {
				for _, value := range values {
					bad := replaced(t, strings.Replace(k.good, "GOOD", "BAD", 1), path, value)
					l := &Listing{}
					*k.list(l) = raws(bad, k.good)
					v := one(Server{Name: "s"}, l)
					if got := k.listed(v); len(got) != 1 || string(got[0]) != k.good {
						t.Errorf("%s with %s %s: listed %s", kind, path, value, got)
					}
					name := kind + ` "BAD"`
					if slices.Contains([]string{"name", "uri", "uriTemplate"}, path) && !(path == "name" && strings.HasPrefix(kind, "resource")) {
						name = kind + " 1"
					}
					want := fmt.Sprintf("s: malformed and left out: %s: %q is ", name, path)
					if w := v.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], want) || !strings.Contains(w[0], ", want ") {
						t.Errorf("%s with %s %s: warned %q, want %s…", kind, path, value, w, want)
					}
				}
			}
		}
	}
}

// replaced returns obj with another value at a path such as "icons[0].src".
func replaced(t *testing.T, obj, path, value string) string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(obj), &root); err != nil {
		t.Fatal(err)
	}
	at := root
	steps := strings.Split(strings.ReplaceAll(path, "[0]", ".0"), ".")
	for i, step := range steps {
		var next any = json.RawMessage(value)
		switch in := at.(type) {
		case map[string]any:
			if in[step] == nil {
				t.Fatalf("%s: the good entry has no %s", path, step)
			}
			if i == len(steps)-1 {
				in[step] = next
			}
			at = in[step]
		case []any:
			if i == len(steps)-1 {
				in[0] = next
			}
			at = in[0]
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Values that some hosts refuse are replaced by equivalent ones. All other bytes stay.
func TestTypedHostsGetWhatTheyAccept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, is, want string }{
		{"resource", `{"uri":"a", "name":"n","title":null,"x":null,"size":1.0,"annotations":{"priority":null,"y":2.0}}`, `{"uri":"a", "name":"n","x":null,"annotations":{"y":2.0}}`},
		{"resource", `{"uri":"a","name":"n","size":9223372036854775808}`, `{"uri":"a","name":"n"}`},
		{"prompt", `{"name":"a","arguments":[ {"name":"b","required":null}, {"name":"c"} ],"description":null}`, `{"name":"a","arguments":[{"name":"b"},{"name":"c"}]}`},
		{"prompt", `{"name":"a","arguments":[ {"name":"b"} , {"name":"c"} ],"descriptions":5}`, `{"name":"a","arguments":[ {"name":"b"} , {"name":"c"} ],"descriptions":5}`},
		{"tool", `{"name":"a","inputSchema":{"properties":{"any":true,"no\"ne":false,"x":{ }}},"outputSchema":null}`,
			`{"name":"a","inputSchema":{"properties":{"any":{},"no\"ne":{"not":{}},"x":{ }},"type":"object"}}`},
		{"tool", `{"outputSchema":{"type":["array","null"]},"name":"a","inputSchema":{"type":"object"}}`, `{"name":"a","inputSchema":{"type":"object"}}`},
		{"tool", `{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"oneOf":[]}}`, `{"name":"a","inputSchema":{"type":"object"}}`},
	} {
		k := kinds[tt.kind]
		l := &Listing{}
		*k.list(l) = raws(tt.is)
		v := one(Server{Name: "s"}, l)
		if got := k.listed(v); len(got) != 1 || string(got[0]) != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s", tt.is, got, tt.want, v.Warnings())
		} else if err := json.Unmarshal(got[0], k.typed()); err != nil {
			t.Error(err)
		}
		if tools := v.Tools(); len(tools) > 0 && string(tools[0].Raw) != tt.is {
			t.Errorf("the tool itself changed: %s", tools[0].Raw)
		}
	}
}

func TestMalformedToolIsExplained(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, &Listing{Tools: raws(`{"name":"x","inputSchema":{},"description":5}`)})
	if got := v.Texts().Unknown("s/x"); !strings.Contains(got, `it is left out: "description" is a number, want a string.`) {
		t.Errorf("got %s", got)
	}
}

// All malformed entries of a list share one warning.
func TestMalformedEntriesShareAWarning(t *testing.T) {
	t.Parallel()
	l := &Listing{}
	for i := range 1000 {
		l.Prompts = append(l.Prompts, json.RawMessage(fmt.Sprintf(`{"name":"p%d","title":5}`, i)))
	}
	w := one(Server{Name: "s"}, l).Warnings()
	if len(w) != 1 || !strings.HasSuffix(w[0], `prompt "p4": "title" is a number, want a string; and 995 more`) {
		t.Errorf("got %q", w)
	}
}
