package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
)

// The tables of the documentation stand between these lines.
const (
	tablesBegin = "<!-- The tables from here on are made by go generate ./schema from schema/types.go. -->\n"
	tablesEnd   = "<!-- Here they end. -->\n"
)

// A section is a table of keys: those of a type, or of some groups of it.
type section struct {
	title  string
	object reflect.Type
	groups []string
}

// sections are the tables in their order. The empty group is what every
// server has.
func sections() []section {
	server, all := reflect.TypeFor[schema.Server](), []string{"", "stdio", "http", "limit"}
	return []section{
		{"The file", reflect.TypeFor[schema.Document](), all},
		{"A server", server, []string{""}},
		{"A server that is a program", server, []string{"stdio"}},
		{"A server at an address", server, []string{"http"}},
		{"Limits: of a server, or in `defaults` for all", server, []string{"limit"}},
		{"`auth`", reflect.TypeFor[schema.Auth](), all},
		{"An entry of `tool_overrides`", reflect.TypeFor[schema.ToolOverride](), all},
		{"`catalog`", reflect.TypeFor[schema.Catalog](), all},
		{"`gateway`", reflect.TypeFor[schema.Gateway](), all},
		{"A node of `tree`", reflect.TypeFor[schema.Node](), all},
		{"The `source` of a node", reflect.TypeFor[schema.Source](), all},
	}
}

// withTables puts the tables into the page, in place of the ones it has.
func withTables(page, root []byte) ([]byte, error) {
	before, rest, ok1 := bytes.Cut(page, []byte(tablesBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(tablesEnd))
	if !ok1 || !ok2 {
		return nil, errors.New("the page has no place for the tables")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(root, &s); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(tablesBegin)
	for _, part := range sections() {
		part.write(&b, &s)
	}
	b.WriteString(tablesEnd)
	b.Write(after)
	return b.Bytes(), nil
}

func (part section) write(b *bytes.Buffer, root *jsonschema.Schema) {
	fmt.Fprintf(b, "\n### %s\n\n| key | meaning | default | example |\n|---|---|---|---|\n", part.title)
	for field := range part.object.Fields() {
		tag := field.Tag
		key := tag.Get("json")
		if key == "" || key == "-" || !slices.Contains(part.groups, tag.Get("group")) {
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", key, meaning(part, root, tag), preset(tag), code(tag.Get("example")))
	}
}

// meaning is the comment of the field, which the schema has as description,
// and what its tags add.
func meaning(part section, root *jsonschema.Schema, tag reflect.StructTag) string {
	text := cell(describe(part.object.Name(), tag.Get("json"), tag.Get("group"), root))
	if enum := tag.Get("enum"); enum != "" {
		text += " One of " + "`" + strings.ReplaceAll(enum, ",", "`, `") + "`."
	}
	if least := tag.Get("min"); least != "" {
		text += " At least " + least + "."
	}
	return text
}

// describe finds the description of a key in the schema.
func describe(object, key, group string, root *jsonschema.Schema) string {
	properties := root.Properties
	switch object {
	case "Document":
	case "Server":
		properties = property(root, "mcp").AdditionalProperties.OneOf[serverKind(group)].Properties
	default:
		properties = root.Definitions[object].Properties
	}
	p, ok := properties.Get(key)
	if !ok {
		panic("no key " + key + " in the schema of " + object)
	}
	return p.Description
}

func serverKind(group string) int {
	if group == "http" {
		return 1
	}
	return 0
}

func preset(tag reflect.StructTag) string {
	switch text := tag.Get("default"); {
	case tag.Get("required") == "true":
		return "required"
	case text == "":
		return ""
	default:
		return code(text)
	}
}

// code is an example for a table: in YAML, as in the types.
func code(text string) string { return "`" + cell(text) + "`" }

// cell keeps a text from ending the cell it stands in.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
}
