package schema

import (
	"reflect"
	"strings"
	"testing"
)

type billing struct {
	Price int    `json:"price" min:"1" default:"2" example:"3"`
	Shell string `json:"shell" group:"stdio" example:"sh"`
}

func (b *billing) Check(fail func(what, hint string, at ...any)) {
	if b.Price == 13 {
		fail("no price is 13", "take another", "price")
	}
}

type document struct {
	File string `json:"file" required:"true" example:"a.json"`
}

var serverSections = []Section{ServerSectionOf[billing]("billing", ""), ServerSectionOf[document]("documents", "document")}

func TestServerKeysOfModules(t *testing.T) {
	cfg, err := LoadText("mcp.yaml", []byte(`{mcp: {a: {command: "true", price: 5}, b: {command: "true", shell: sh}, c: {command: "true"},
		d: {file: x.json, headers: {A: b}, price: 7}}, mcpServers: {E: {file: y.json, enabled: true}}}`), LoadOptions{Sections: serverSections})
	if err != nil {
		t.Fatal(err)
	}
	want := []billing{{5, ""}, {2, "sh"}, {2, ""}, {7, ""}, {2, ""}}
	for i, s := range cfg.Servers {
		if got := ServerKeys[billing](s); got != want[i] {
			t.Errorf("%s: got %+v, want %+v", s.Name, got, want[i])
		}
	}
	for i, file := range map[int]string{3: "x.json", 4: "y.json"} {
		if s := cfg.Servers[i]; s.Transport != "document" || ServerKeys[document](s).File != file || s.Check() != nil {
			t.Errorf("%s: got %s, %+v, %v", s.Name, s.Transport, ServerKeys[document](s), s.Check())
		}
	}
	if c := cfg.Servers[2]; c.Keys != nil || reflect.DeepEqual(c, c.WithKeys(billing{Price: 2})) {
		t.Error("an entry without keys of modules has some, or the keys make no difference")
	}
	text, err := SetServer("mcp.yaml", []byte("mcp: {}\n"), cfg.Servers[3].WithoutDefaults())
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadText("mcp.yaml", text, LoadOptions{Sections: serverSections})
	if err != nil || !reflect.DeepEqual(again.Servers[0], cfg.Servers[3]) {
		t.Errorf("written and read again: %v\n%s", err, text)
	}
}

func TestErrorsInServerKeysOfModules(t *testing.T) {
	for text, want := range map[string]string{
		`{command: "true", price: 0}`:          "mcp.a.price: 0 is too small",
		`{command: "true", price: 13}`:         "mcp.a.price: no price is 13",
		`{command: "true", prices: 3}`:         `did you mean "price"`,
		`{url: "https://a.example", shell: x}`: "mcp.a.shell: this key does not go with transport streamable-http",
		`{file: x.json, shell: x}`:             "mcp.a.shell: this key does not go with transport document",
		`{file: x.json, args: [x]}`:            "mcp.a.args: this key does not go with transport document",
		`{price: 3}`:                           "nothing says how to reach this server",
	} {
		if _, err := LoadText("mcp.yaml", []byte("mcp: {a: "+text+"}"), LoadOptions{Sections: serverSections}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
