package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Limits of a document.
const (
	maxDocument   = 48 << 20 // bytes
	maxOperations = 10_000
	maxRefs       = 32  // in a row, before anything else is found
	maxDepth      = 200 // of YAML
)

// An object is a JSON object of a document.
type object = map[string]any

// A document is an OpenAPI document as a tree of JSON. It is not validated as a whole: an
// operation that cannot be read is left out, and the others remain.
type document struct {
	root object
	v2   bool // Swagger 2.0
	v30  bool // OpenAPI 3.0, whose schemas are not quite JSON Schema
}

// parse reads a document from JSON or YAML.
func parse(text []byte) (*document, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the document has more than %d MB", maxDocument>>20)
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	var root any
	var err error
	if len(text) > 0 && text[0] == '{' {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&root)
	} else {
		root, err = fromYAML(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	d := &document{}
	var ok bool
	if d.root, ok = root.(object); !ok {
		return nil, errors.New("the document is not an object")
	}
	version := textOf(d.root["openapi"])
	switch {
	case textOf(d.root["swagger"]) == "2.0":
		d.v2 = true
	case strings.HasPrefix(version, "3.0"):
		d.v30 = true
	case strings.HasPrefix(version, "3."):
	case version != "":
		return nil, fmt.Errorf("OpenAPI %.20s is not supported, only 2.0 and 3", version)
	default:
		return nil, errors.New(`the document is not of OpenAPI: it has neither "openapi" nor "swagger"`)
	}
	return d, nil
}

// fromYAML decodes YAML. Aliases share what they stand for.
func fromYAML(text []byte) (root any, err error) {
	defer func() { // the parser panics on some inputs
		if recover() != nil {
			err = errors.New("malformed YAML")
		}
	}()
	err = yaml.Unmarshal(text, &root)
	var detail yaml.Error
	switch {
	case errors.As(err, &detail):
		return nil, errors.New(detail.GetMessage())
	case err != nil:
		return nil, err
	}
	nodes := maxDocument / 2
	return plain(root, maxDepth, &nodes)
}

// plain returns a tree of the types of encoding/json, numbers as json.Number, and refuses one that is
// deeper or larger than a document may be, such as one that YAML aliases expand to.
func plain(v any, depth int, nodes *int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("the document nests deeper than %d levels", maxDepth)
	}
	if *nodes--; *nodes < 0 {
		return nil, errors.New("the document has too many values")
	}
	var err error
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, value := range v {
			if out[key], err = plain(value, depth-1, nodes); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[any]any:
		out := make(object, len(v))
		for key, value := range v {
			if out[fmt.Sprint(key)], err = plain(value, depth-1, nodes); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = plain(v[i], depth-1, nodes); err != nil {
				return nil, err
			}
		}
		return out, nil
	case nil, bool, string, json.Number:
		return v, nil
	}
	number, err := json.Marshal(v)
	if err != nil || number[0] == '"' {
		return fmt.Sprint(v), nil
	}
	return json.Number(number), nil
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// An externalRef is a reference to another document.
type externalRef string

func (e externalRef) Error() string {
	return fmt.Sprintf("it refers to another document (%.80s), which dynmcp does not fetch", string(e))
}

// at returns what a reference within the document refers to.
func (d *document) at(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	switch {
	case !ok:
		return nil, externalRef(ref)
	case pointer != "" && pointer[0] != '/':
		return nil, fmt.Errorf("the reference %.80s is not a path", ref)
	}
	var v any = d.root
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = unescaped(part)
		switch container := v.(type) {
		case object:
			if v, ok = container[part]; !ok {
				return nil, fmt.Errorf("there is no %.80s in the document", ref)
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(container) {
				return nil, fmt.Errorf("there is no %.80s in the document", ref)
			}
			v = container[i]
		default:
			return nil, fmt.Errorf("there is no %.80s in the document", ref)
		}
	}
	return v, nil
}

// unescaped returns a part of a reference: a JSON pointer in a URI.
func unescaped(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}

var errLoop = errors.New("a reference leads to itself")

// follow returns the object that v is or refers to. It is not for schemas, which may refer to
// themselves.
func (d *document) follow(v any) (object, error) {
	for range maxRefs {
		o, ok := v.(object)
		if !ok {
			return nil, errors.New("something that should be an object is not")
		}
		ref, ok := o["$ref"].(string)
		if !ok {
			return o, nil
		}
		var err error
		if v, err = d.at(ref); err != nil {
			return nil, err
		}
	}
	return nil, errLoop
}

// info returns a text of the document's info.
func (d *document) info(key string) string {
	info, _ := d.root["info"].(object)
	return strings.TrimSpace(textOf(info[key]))
}

// texts returns the texts of a list.
func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
