package openapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// An operation is an operation of a document as a tool.
type operation struct {
	Name    string // of the tool
	Tags    []string
	Summary string
	Tool    json.RawMessage // as it is listed

	method, path string
	base         *url.URL
	params       []param
	body         *body
}

// A param is a parameter of an operation.
type param struct {
	arg      string // the name of the argument
	name     string
	in       string // path, query, header or cookie
	style    string
	explode  bool
	reserved bool // reserved characters are not escaped
	json     bool // its value is JSON
	required bool
	schema   any
	about    string
}

// methods are those of operations, in the order of lists.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// A place says where the operations of a document may be sent.
type place struct {
	url     *url.URL        // of the entry, nil without one
	address *url.URL        // of the document, nil for a file
	headers map[string]bool // canonical names of headers that the entry sets
}

// operations returns the operations of the document by name, in the order of their paths, and why some
// were left out.
func (d *document) operations(at place) (all []*operation, left []error, err error) {
	var sources []object
	paths, err := d.follow(d.root["paths"])
	if err != nil && d.root["paths"] != nil {
		return nil, nil, errors.New("the document has no object of paths")
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		item, err := d.follow(paths[path])
		if err != nil {
			left = append(left, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, method := range methods {
			if item[method] == nil {
				continue
			}
			if len(all) == maxOperations {
				return nil, nil, fmt.Errorf("the document has more than %d operations", maxOperations)
			}
			op, err := d.operation(at, strings.ToUpper(method), path, item)
			if err != nil {
				left = append(left, fmt.Errorf("%s %s: %w", strings.ToUpper(method), path, err))
				continue
			}
			all = append(all, op)
			sources = append(sources, item[method].(object))
		}
	}
	distinguish(all)
	listed := all[:0]
	for i, op := range all {
		if err := op.list(d, sources[i]); err != nil {
			left = append(left, fmt.Errorf("%s %s: %w", op.method, op.path, err))
			continue
		}
		listed = append(listed, op)
	}
	if all = listed; len(all) == 0 && len(left) > 0 {
		return nil, nil, left[0]
	}
	if len(all) == 0 {
		return nil, nil, errors.New("the document has no operations")
	}
	return all, left, nil
}

// operation reads an operation of a path.
func (d *document) operation(at place, method, path string, item object) (*operation, error) {
	o, ok := item[strings.ToLower(method)].(object)
	if !ok {
		return nil, errors.New("the operation is not an object")
	}
	op := &operation{method: method, path: path, Tags: texts(o["tags"]), Summary: strings.TrimSpace(textOf(o["summary"]))}
	var err error
	if op.base, err = d.base(at, o, item); err != nil {
		return nil, err
	}
	if err := d.inputs(op, at, o, item); err != nil {
		return nil, err
	}
	op.Name = cleaned(textOf(o["operationId"]), maxName)
	if op.Name == "" {
		op.Name = cleaned(strings.ToLower(method)+"_"+strings.Trim(path, "/"), maxName)
	}
	return op, nil
}

// maxName is the longest name of a tool that all hosts take.
const maxName = 64

// cleaned returns a name of letters, digits, hyphens and underscores. A long one ends with a digest.
func cleaned(name string, most int) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && (r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	short := strings.Trim(b.String(), "_")
	if len(short) > most {
		short = short[:most-9] + "_" + digest(name)
	}
	return short
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:8] }

// distinguish gives operations of the same name names of their own. The first keeps the name;
// the others end with a digest of their method and path, which does not depend on the rest.
func distinguish(all []*operation) {
	taken := map[string]bool{}
	for _, op := range all {
		for try := op.Name; taken[op.Name]; try += "'" {
			op.Name = op.Name[:min(len(op.Name), maxName-9)] + "_" + digest(op.method+" "+op.path+try)
		}
		taken[op.Name] = true
	}
}

// base returns the address that the path of an operation follows. It is that of the entry or, without
// one, the first of the document at the document's own origin.
func (d *document) base(at place, o, item object) (*url.URL, error) {
	if at.url != nil {
		return at.url, nil
	}
	var named []string
	for _, list := range []any{o["servers"], item["servers"], d.root["servers"]} {
		if servers, ok := list.([]any); ok && len(servers) > 0 {
			named = addresses(servers)
			break
		}
	}
	if d.v2 {
		named = d.hosts(at.address)
	}
	if len(named) == 0 {
		named = []string{"/"}
	}
	for _, address := range named {
		u, err := at.address.Parse(address)
		if err == nil && origin(u) == origin(at.address) {
			u.RawQuery, u.Fragment = "", ""
			return u, nil
		}
	}
	return nil, fmt.Errorf("the document sends it to %.100s, another origin than its own: if that is right, write it as \"url\" in the entry", named[0])
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

// addresses returns the urls of servers, with the defaults of their variables.
func addresses(servers []any) (all []string) {
	for _, server := range servers {
		o, _ := server.(object)
		address := textOf(o["url"])
		variables, _ := o["variables"].(object)
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			variable, _ := variables[name].(object)
			address = strings.ReplaceAll(address, "{"+name+"}", textOf(variable["default"]))
		}
		all = append(all, address)
	}
	return all
}

// hosts returns the addresses of a document of version 2.0.
func (d *document) hosts(at *url.URL) (all []string) {
	host := cmp.Or(textOf(d.root["host"]), at.Host)
	schemes := texts(d.root["schemes"])
	if len(schemes) == 0 {
		schemes = []string{at.Scheme}
	}
	for _, scheme := range schemes {
		all = append(all, scheme+"://"+host+cmp.Or(textOf(d.root["basePath"]), "/"))
	}
	return all
}

// A tool is an operation as tools/list has it.
type tool struct {
	Name         string      `json:"name"`
	Title        string      `json:"title,omitempty"`
	Description  string      `json:"description"`
	InputSchema  object      `json:"inputSchema"`
	OutputSchema object      `json:"outputSchema,omitempty"`
	Annotations  annotations `json:"annotations"`
}

// Annotations by the meaning that HTTP gives to methods (RFC 9110, 9.2).
type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

func annotationsOf(method string) annotations {
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
	return annotations{
		ReadOnly: safe, Destructive: method == http.MethodDelete,
		Idempotent: safe || method == http.MethodPut || method == http.MethodDelete, OpenWorld: true,
	}
}

// maxDescription is the most bytes that are kept of the description of an operation.
const maxDescription = 2000

// list makes the tool of the operation.
func (op *operation) list(d *document, o object) error {
	input, err := d.schemaOf(false, maxInput, op.input)
	if err != nil {
		return err
	}
	output, err := d.output(o)
	if err != nil {
		return err
	}
	description := strings.TrimSpace(textOf(o["description"]))
	if description == op.Summary {
		description = ""
	}
	if len(description) > maxDescription {
		description = strings.ToValidUTF8(description[:maxDescription], "") + "…"
	}
	last := op.method + " " + op.path
	if len(op.Tags) > 0 {
		last += ". Tags: " + strings.Join(op.Tags, ", ")
	}
	parts := []string{op.Summary, description, last}
	if o["deprecated"] == true {
		parts = append([]string{"Deprecated."}, parts...)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	op.Tool, err = compact(tool{op.Name, op.Summary, strings.Join(parts, "\n\n"), input, output, annotationsOf(op.method)})
	return err
}

// compact returns JSON without escapes for HTML.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// output returns the schema of the answers of an operation, nil if they are not always JSON
// objects: MCP allows no others, and an answer without one is an error to hosts that check.
func (d *document) output(o object) (object, error) {
	responses, _ := o["responses"].(object)
	var only object
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		response, err := d.follow(responses[status])
		if err != nil || only != nil {
			return nil, err
		}
		only = response
	}
	schema := only["schema"] // 2.0
	if content, ok := only["content"].(object); ok {
		for _, kind := range slices.Sorted(maps.Keys(content)) { // JSON is what requests prefer
			if media, ok := content[kind].(object); ok && isJSON(kind) {
				schema = media["schema"]
			}
		}
	}
	if schema == nil {
		return nil, nil
	}
	out, err := d.schemaOf(true, maxOutput, func(c *converter) object { return c.root(schema) })
	if err != nil || out["type"] != "object" {
		return nil, err
	}
	return out, nil
}
