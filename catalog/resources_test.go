package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

// twoLibraries returns two servers that list the same things.
func twoLibraries() *Catalog {
	return loadedWith([]Server{{Name: "first"}, {Name: "second"}}, map[string]*Listing{
		"first": {
			Resources: raws(`{"uri":"file:///a","name":"A", "x":1.0}`, `{"uri":"shared://x","name":"one"}`, `{"name":"no uri"}`, `7`),
			Templates: raws(`{"uriTemplate":"file:///{path}","name":"t"}`, `{"uriTemplate":"{anything}","name":"t"}`, `{"uriTemplate":"fixed://exact","name":"t"}`),
			Prompts:   raws(`{"name":"greet","arguments":[]}`),
		},
		"second": {
			Resources: raws(`{"uri":"shared://x","name":"two"}`, `{"uri":"file:///b/c","name":"c"}`, `{"uri":"file:///b/c","name":"again"}`),
			Templates: raws(`{"uriTemplate":"file:///deep/{path}","name":"t"}`, `{"uriTemplate":"file:///{path}","name":"t"}`, `{"uriTemplate":"db://{t}/{r}","name":"t"}`),
			Prompts:   raws(`{"name":"greet"}`, `{"name":"bye"}`),
		},
	})
}

func TestResourcesAndPromptsAreConcatenatedVerbatim(t *testing.T) {
	t.Parallel()
	v := twoLibraries().View()
	equal(t, v.Resources(), raws(`{"uri":"file:///a","name":"A", "x":1.0}`, `{"uri":"dynmcp+first+shared://x","name":"one"}`,
		`{"uri":"dynmcp+second+shared://x","name":"two"}`, `{"uri":"file:///b/c","name":"c"}`, `{"uri":"file:///b/c","name":"again"}`))
	equal(t, v.Templates(), raws(`{"uriTemplate":"dynmcp+first+file:///{path}","name":"t"}`, `{"uriTemplate":"{anything}","name":"t"}`, `{"uriTemplate":"fixed://exact","name":"t"}`,
		`{"uriTemplate":"file:///deep/{path}","name":"t"}`, `{"uriTemplate":"dynmcp+second+file:///{path}","name":"t"}`, `{"uriTemplate":"db://{t}/{r}","name":"t"}`))
	equal(t, v.Prompts(), raws(`{"name":"first.greet","arguments":[]}`, `{"name":"second.greet"}`, `{"name":"bye"}`))
	equal(t, v.Warnings(), []string{
		`first: malformed and left out: resource 3: "uri" is missing, want a string; resource 4: it is a number, want an object`})
}

// What one server alone is loaded with, or stored with, has the same names.
func TestNamesDoNotDependOnWhatRuns(t *testing.T) {
	t.Parallel()
	c := twoLibraries()
	all := c.View()
	stored := &Stored{Listing: Listing{Prompts: raws(`{"name":"greet"}`, `{"name":"bye"}`), Resources: raws(`{"uri":"shared://x","name":"two"}`)}, ReadTools: func() []json.RawMessage { return nil }}
	c.Put("second", nil)
	if got := c.View().Prompts(); len(got) != 1 || string(got[0]) != `{"name":"greet","arguments":[]}` {
		t.Errorf("the second is not known, got %s", got)
	}
	c.RememberServer("second", stored)
	equal(t, c.View().Prompts(), all.Prompts())
	equal(t, c.View().Resources()[:3], all.Resources()[:3])
}

func TestCollisionsAreNamedAndGoOnceResolved(t *testing.T) {
	t.Parallel()
	c := twoLibraries()
	equal(t, c.View().Collisions(), []string{
		`resource URI collision: "shared://x" is listed by first and second; hosts see "dynmcp+first+shared://x", "dynmcp+second+shared://x"`,
		`resource template collision: "file:///{path}" is listed by first and second; hosts see "dynmcp+first+file:///{path}", "dynmcp+second+file:///{path}"`,
		`prompt name collision: "greet" is listed by first and second; hosts see "first.greet", "second.greet"`,
	})
	if shown := c.View().Texts().Loaded("second"); !strings.Contains(shown, "- dynmcp+second+shared://x (two)") || !strings.Contains(shown, "- second.greet") {
		t.Error(shown)
	}
	put(c, "first", &Listing{})
	if got := c.View().Collisions(); got != nil {
		t.Error(got)
	}
	equal(t, c.View().Entries("resources", "second")[:1], raws(`{"uri":"shared://x","name":"two"}`))
}

func TestListsAreEmptyBeforeData(t *testing.T) {
	t.Parallel()
	v := New().View()
	if len(v.Resources())+len(v.Templates())+len(v.Prompts())+len(v.Tools())+len(v.Servers()) != 0 {
		t.Error("an empty catalogue lists something")
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	all := `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`
	for _, tt := range []struct {
		name    string
		unknown bool
		caps    []string
		want    string
	}{
		{"nothing", false, nil, `{"tools":{"listChanged":true}}`},
		{"absent", false, []string{"", "null", "{}", "[]", `"x"`, `{"resources":null}`}, `{"tools":{"listChanged":true}}`},
		{"tools without listChanged", false, []string{`{"tools":{}}`}, `{"tools":{"listChanged":true}}`},
		{"resources plain", false, []string{`{"resources":{}}`}, `{"tools":{"listChanged":true},"resources":{}}`},
		{"resources or", false, []string{`{"resources":{"subscribe":true}}`, `{"resources":{"subscribe":false,"listChanged":true}}`},
			`{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}`},
		{"false is absent", false, []string{`{"resources":{"subscribe":false},"prompts":{"listChanged":false}}`},
			`{"tools":{"listChanged":true},"resources":{},"prompts":{}}`},
		{"mixture", false, []string{`{"logging":{}}`, `{"completions":{},"prompts":{"listChanged":true}}`, `{"resources":{"listChanged":true,"subscribe":true}}`}, all},
		{"unknown", true, nil, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New()
			var servers []Server
			for i := range tt.caps {
				servers = append(servers, Server{Name: string(rune('a' + i))})
			}
			c.Declare(servers)
			for i, caps := range tt.caps {
				put(c, servers[i].Name, &Listing{Capabilities: json.RawMessage(caps)})
			}
			equal(t, string(c.View().Capabilities(tt.unknown)), tt.want)
		})
	}
}

func TestCompleteOnceEveryServerIsListed(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{{Name: "a"}, {Name: "b", Lazy: true}})
	put(c, "a", &Listing{})
	if c.View().Complete() {
		t.Error("complete without b")
	}
	put(c, "b", &Listing{})
	if !c.View().Complete() {
		t.Error("not complete with a listing of b")
	}
}
