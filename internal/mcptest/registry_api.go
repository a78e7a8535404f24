package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// registryModule is the module with the documents about registries of servers. .ci/release and
// .ci/windows read the version here.
const registryModule = "github.com/modelcontextprotocol/registry@v1.8.7"

// started is the environment at the start: tests change HOME, where the go command has its modules.
var started = os.Environ()

// RegistryDocs returns docs/reference of the registry's module: api/openapi.yaml describes the
// API, and server-json the servers. The go command downloads the module once. If MCPTEST_PROGRAMS
// names a directory, the documents are in its directory registry.
var RegistryDocs = sync.OnceValues(func() (fs.FS, error) {
	if dir := os.Getenv("MCPTEST_PROGRAMS"); dir != "" {
		return os.DirFS(filepath.Join(dir, "registry")), nil
	}
	download := exec.Command("go", "mod", "download", "-json", registryModule)
	download.Env = started
	out, err := download.Output()
	var module struct{ Dir, Error string }
	if json.Unmarshal(out, &module) != nil || module.Dir == "" {
		return nil, fmt.Errorf("the documents of registries come with the module %s: %w", registryModule, errors.Join(err, errors.New(module.Error)))
	}
	return os.DirFS(filepath.Join(module.Dir, "docs", "reference")), nil
})

// A registryAPI is the OpenAPI document.
type registryAPI struct {
	Paths      map[string]struct{ Get *registryPath }
	Components struct {
		Schemas map[string]json.RawMessage
	}
	resolved sync.Map // the schemas so far, by their texts
}

// A registryPath is a path of the API.
type registryPath struct {
	Parameters []struct {
		Name, In string
		Schema   struct{ Type string }
	}
	Responses map[string]struct { // by status
		Content map[string]struct{ Schema json.RawMessage }
	}
}

var registryDocument = sync.OnceValues(func() (*registryAPI, error) {
	docs, err := RegistryDocs()
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(docs, "api/openapi.yaml")
	if err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, err
	}
	api := &registryAPI{}
	return api, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), api)
})

// find returns the API path of a URL, nil if there is none, and the values of the parameters in
// braces.
func (a *registryAPI) find(u *url.URL) (p *registryPath, values map[string]string) {
	words := strings.Split(u.EscapedPath(), "/")
	for template, path := range a.Paths {
		parts := strings.Split(template, "/")
		if path.Get == nil || len(parts) != len(words) {
			continue
		}
		values := map[string]string{}
		fits := true
		for i, part := range parts {
			word, err := url.PathUnescape(words[i])
			if strings.HasPrefix(part, "{") {
				values[strings.Trim(part, "{}")] = word
			} else {
				fits = fits && err == nil && word == part
			}
		}
		if fits {
			return path.Get, values
		}
	}
	return nil, nil
}

// check returns an error for a query parameter that the API does not have, or of the wrong type.
func (p *registryPath) check(query url.Values) error {
	types := map[string]string{}
	for _, parameter := range p.Parameters {
		if parameter.In == "query" {
			types[parameter.Name] = parameter.Schema.Type
		}
	}
	for name, values := range query {
		var err error
		switch types[name] {
		case "":
			err = fmt.Errorf("there is no such parameter")
		case "integer":
			_, err = strconv.Atoi(values[0])
		case "boolean":
			_, err = strconv.ParseBool(values[0])
		}
		if err == nil && len(values) != 1 {
			err = fmt.Errorf("it is there %d times", len(values))
		}
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return nil
}

// answer returns the schema of answers with a status, nil if the API has none.
func (p *registryPath) answer(status int) json.RawMessage {
	return p.Responses[strconv.Itoa(status)].Content["application/json"].Schema
}

// checkAnswer validates an answer against its schema.
func (a *registryAPI) checkAnswer(p *registryPath, status int, body string) error {
	if status == http.StatusNotModified {
		return nil
	}
	schema := p.answer(status)
	if schema == nil {
		return fmt.Errorf("the API has no status %d here", status)
	}
	return a.check(schema, body)
}

const serverSchema = `{"$ref":"#/$defs/ServerDetail"}`

// CheckServerJSON validates a server.json against the schema.
func CheckServerJSON(text string) error {
	api, err := registryDocument()
	if err != nil {
		return err
	}
	return api.check(json.RawMessage(serverSchema), text)
}

func (a *registryAPI) check(schema json.RawMessage, text string) error {
	resolved, ok := a.resolved.Load(string(schema))
	if !ok {
		var root jsonschema.Schema
		if err := json.Unmarshal(Raw(map[string]any{"$defs": a.Components.Schemas, "allOf": []any{schema}}), &root); err != nil {
			return err
		}
		made, err := root.Resolve(nil)
		if err != nil {
			return err
		}
		resolved, _ = a.resolved.LoadOrStore(string(schema), made)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	return resolved.(*jsonschema.Resolved).Validate(value)
}

// example returns an example of a schema, made of the examples in it.
func (a *registryAPI) example(schema json.RawMessage) any {
	var s struct {
		Ref            string `json:"$ref"`
		Type           string
		Example        any
		Enum, Examples []any
		AllOf, AnyOf   []json.RawMessage
		Properties     map[string]json.RawMessage
		Items          json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // true or false
	}
	switch first := slices.Concat([]any{s.Example}, s.Examples, s.Enum); {
	case s.Ref != "":
		return a.example(a.Components.Schemas[strings.TrimPrefix(s.Ref, "#/$defs/")])
	case s.Example != nil:
		return s.Example
	case len(first) > 1:
		return first[1]
	case len(s.AnyOf) > 0 && s.Properties == nil:
		return a.example(s.AnyOf[0])
	case s.Items != nil:
		if item := a.example(s.Items); item != nil {
			return []any{item}
		}
		return nil
	}
	object := map[string]any{}
	for _, part := range s.AllOf {
		if members, ok := a.example(part).(map[string]any); ok {
			maps.Copy(object, members)
		}
	}
	for name, of := range s.Properties {
		if value := a.example(of); value != nil {
			object[name] = value
		}
	}
	if len(object) == 0 {
		return nil
	}
	return object
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)\n```")

// PublishedServers returns the published examples of server.json: those of its documentation, and one
// made of the examples in the schema.
func PublishedServers() (servers []string, err error) {
	api, err := registryDocument()
	if err != nil {
		return nil, err
	}
	docs, err := RegistryDocs()
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(docs, "server-json/generic-server-json.md")
	for _, found := range jsonBlock.FindAllStringSubmatch(string(text), -1) {
		servers = append(servers, found[1])
	}
	return append(servers, string(Raw(api.example(json.RawMessage(serverSchema))))), err
}
