package keys

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
)

// The lists of keys stand between these lines of the documentation.
const (
	listsBegin = "<!-- go generate ./cmd/dynmcp writes what follows, from schema/types.go and the modules. -->\n"
	listsEnd   = "<!-- It ends here. -->\n"
)

// pages are the pages with lists of keys: docs, and those that tell what a section is for.
var pages = []string{
	docs, "docs/activity.md", "docs/catalogue.md", "docs/gateway.md", "docs/login.md", "docs/policy.md", "docs/profiles.md",
	"docs/sandbox.md", "docs/scripts.md", "docs/surfaces.md", "docs/webhooks.md",
}

// elsewhere has the page of a section, by its title, that is not docs.
var elsewhere = map[string]string{
	"`activity`": "docs/activity.md",
	"`auth`":     "docs/login.md",
	"`catalog`":  "docs/catalogue.md",
	"`credentials` of a server at an address, as an object": "docs/login.md",
	"`exchange` of `credentials`":                           "docs/login.md",
	"`gateway`":                                             "docs/gateway.md",
	"`policy`":                                              "docs/policy.md",
	"A profile of `profiles`, which may be the list of its servers": "docs/profiles.md",
	"An entry of a profile's `overrides`":                           "docs/profiles.md",
	"`sandbox`, of a program or in `defaults`":                      "docs/sandbox.md",
	"`scripts`":              "docs/scripts.md",
	"A node of `tree`":       "docs/surfaces.md",
	"The `source` of a node": "docs/surfaces.md",
	"`webhooks`":             "docs/webhooks.md",
}

// A section is a list of keys: those of a type, or of some groups of it.
type section struct {
	title  string
	object reflect.Type
	groups []string
}

// sections are the lists in their order. The empty group has the keys of all servers.
func sections(modules []schema.Section) []section {
	server, all := reflect.TypeFor[schema.Server](), []string{"", "stdio", "sandbox", "http", "tls", "limit"}
	lists := []section{
		{"The file", reflect.TypeFor[schema.Document](), all},
		{"A server", server, []string{""}},
		{"A server that is a program", server, []string{"stdio", "sandbox"}},
		{"A server at an address", server, []string{"http", "tls"}},
		{"Limits: of a server, or in `defaults` for all", server, []string{"limit"}},
		{"`auth`", reflect.TypeFor[schema.Auth](), all},
		{"`credentials` of a server at an address, as an object", reflect.TypeFor[schema.Credentials](), all},
		{"`exchange` of `credentials`", reflect.TypeFor[schema.Exchange](), all},
		{"`tls`, of a server at an address or in `defaults`", reflect.TypeFor[schema.TLS](), all},
		{"`scripts`", reflect.TypeFor[schema.Scripts](), all},
		{"An entry of `tool_overrides`", reflect.TypeFor[schema.ToolOverride](), all},
		{"A profile of `profiles`, which may be the list of its servers", reflect.TypeFor[schema.Profile](), all},
		{"An entry of a profile's `overrides`", reflect.TypeFor[schema.ProfileOverride](), all},
		{"`catalog`", reflect.TypeFor[schema.Catalog](), all},
		{"`gateway`", reflect.TypeFor[schema.Gateway](), all},
		{"A node of `tree`", reflect.TypeFor[schema.Node](), all},
		{"The `source` of a node", reflect.TypeFor[schema.Source](), all},
	}
	for _, m := range modules {
		if m.Transport != "" {
			lists = append(lists, section{"A server with `" + required(m)[0] + "`", m.Type, all})
		}
		for f := range m.Type.Fields() {
			title := "`" + f.Tag.Get("json") + "`"
			if f.Tag.Get("group") == "sandbox" {
				title += ", of a program or in `defaults`"
			}
			if t := structOf(f.Type); t != nil && f.IsExported() {
				lists = append(lists, section{title, t, all})
			}
		}
	}
	return lists
}

// withKeys puts the lists of keys of a page into its text, in place of the ones it has.
func withKeys(name string, page, root []byte, modules []schema.Section) ([]byte, error) {
	before, rest, ok1 := bytes.Cut(page, []byte(listsBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(listsEnd))
	if !ok1 || !ok2 {
		return nil, errors.New(name + " has no place for the lists of keys")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(root, &s); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(listsBegin)
	for _, part := range sections(modules) {
		if cmp.Or(elsewhere[part.title], docs) == name {
			part.write(&b, &s, modules)
		}
	}
	b.WriteString(listsEnd)
	b.Write(after)
	return b.Bytes(), nil
}

func (part section) write(b *bytes.Buffer, root *jsonschema.Schema, modules []schema.Section) {
	fmt.Fprintf(b, "\n### %s\n\n", part.title)
	part.writeKeys(b, root)
	of := []reflect.Type{reflect.TypeFor[schema.Document](), reflect.TypeFor[schema.Server]()}
	for _, m := range modules {
		if slices.Contains(of, part.object) && m.Server == (part.object == of[1]) && m.Transport == "" {
			section{"", m.Type, part.groups}.writeKeys(b, root)
		}
	}
}

func (part section) writeKeys(b *bytes.Buffer, root *jsonschema.Schema) {
	for field := range part.object.Fields() {
		tag := field.Tag
		key := tag.Get("json")
		if key == "" || key == "-" || !slices.Contains(part.groups, tag.Get("group")) {
			continue
		}
		b.WriteString(wrap("- `"+key+"`: "+meaning(part, root, tag), "  "))
	}
}

// lineWidth is the longest line that wrap writes, unless a piece of code is longer.
const lineWidth = 150

// piece matches text that wrap keeps together: a word, or code with adjacent text.
var piece = regexp.MustCompile("[^\\s`]*`[^`]*`\\S*|\\S+")

// wrap breaks a text into lines. All but the first begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	width := 0
	for i, p := range piece.FindAllString(text, -1) {
		switch {
		case i == 0:
		case width+1+len(p) > lineWidth:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(p)
		width += len(p)
	}
	return b.String() + "\n"
}

// names reports whether the text contains all values as words.
func names(text string, values []string) bool {
	words := regexp.MustCompile(`[\w-]+`).FindAllString(text, -1)
	return !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(words, v) })
}

// meaning returns the comment of the field, which is its description in the schema, and what
// its tags add: an example if neither the values nor the default show the form.
func meaning(part section, root *jsonschema.Schema, tag reflect.StructTag) string {
	text := describe(part.object, tag.Get("json"), tag.Get("group"), root)
	if values := schema.Allowed(tag); values != nil && !names(text, values) {
		text += " One of " + "`" + strings.Join(values, "`, `") + "`."
	}
	if least := tag.Get("min"); least != "" {
		text += " At least " + least + "."
	}
	preset, shows := tag.Get("default"), true
	switch {
	case tag.Get("required") == "true":
		text += " Required."
	case preset != "" && preset != "[]" && preset != "{}":
		text += " Default: `" + preset + "`."
		shows = false
	}
	if shows && tag.Get("enum") == "" {
		text += " Example: `" + tag.Get("example") + "`."
	}
	return text
}

// describe finds the description of a key in the schema.
func describe(object reflect.Type, key, group string, root *jsonschema.Schema) string {
	kinds := property(root, "mcp").AdditionalProperties.OneOf
	places := append([]*jsonschema.Schema{root, kinds[serverKind(group)]}, kinds...)
	switch own, ok := root.Definitions[object.Name()]; {
	case ok:
		places = []*jsonschema.Schema{own}
	case object == reflect.TypeFor[schema.Server]():
		places = places[1:]
	}
	for _, place := range places {
		if p, ok := place.Properties.Get(key); ok {
			return p.Description
		}
	}
	panic("no key " + key + " in the schema of " + object.Name())
}

func serverKind(group string) int {
	if group == "http" || group == "tls" {
		return 1
	}
	return 0
}
