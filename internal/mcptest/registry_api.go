package mcptest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// registryDocument describes API v0.1 of registries: the paths that are read, their parameters,
// and JSON Schemas of the answers, server.json among them. It states the facts of
// docs/reference/api/openapi.yaml of modelcontextprotocol/registry (2025-12-01).
//
//go:embed registry_api.json
var registryDocument []byte

// A registryPath is a path of the API.
type registryPath struct {
	Query   map[string]string // the types of the parameters
	Answers map[string]string // the names of the schemas, by status
}

// registryPaths returns the paths of the API, by their templates.
var registryPaths = sync.OnceValue(func() map[string]registryPath {
	var document struct{ Paths map[string]registryPath }
	if err := json.Unmarshal(registryDocument, &document); err != nil {
		panic(err)
	}
	return document.Paths
})

// findRegistryPath returns the path of the API that a request is for, and what is in the place of
// {name} and {version}.
func findRegistryPath(u *url.URL) (template string, values map[string]string) {
	words := strings.Split(u.EscapedPath(), "/")
	for template := range registryPaths() {
		parts := strings.Split(template, "/")
		if len(parts) != len(words) {
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
			return template, values
		}
	}
	return "", nil
}

// check says which of the parameters of a request the API does not have.
func (p registryPath) check(query url.Values) error {
	for name, values := range query {
		var err error
		switch p.Query[name] {
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

// checkAnswer compares an answer with its schema.
func (p registryPath) checkAnswer(status int, body string) error {
	if status == http.StatusNotModified {
		return nil
	}
	name := p.Answers[strconv.Itoa(status)]
	if name == "" {
		return fmt.Errorf("the API has no status %d here", status)
	}
	return checkRegistry(name, body)
}

// CheckServerJSON compares a server.json with the schema.
func CheckServerJSON(text string) error { return checkRegistry("Server", text) }

func checkRegistry(name, text string) error {
	schema, err := registrySchema(name)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	return schema.Validate(value)
}

func registrySchema(name string) (*jsonschema.Resolved, error) {
	var document struct {
		Defs map[string]*jsonschema.Schema `json:"$defs"`
	}
	if err := json.Unmarshal(registryDocument, &document); err != nil {
		return nil, err
	}
	return (&jsonschema.Schema{Ref: "#/$defs/" + name, Defs: document.Defs}).Resolve(nil)
}
