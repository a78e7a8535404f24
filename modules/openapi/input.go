package openapi

import (
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// A body is the body of a request.
type body struct {
	arg      string
	kind     kind
	media    string // its media type
	required bool
	schema   any
	about    string
	encoding object // of the parts of a form, by name
	binary   map[string]bool
}

// A kind is how an argument becomes a body.
type kind int

const (
	kindJSON kind = iota
	kindForm
	kindMultipart
	kindText
	kindBinary
)

// kindOf returns the kind of a media type, and how much it is preferred.
func kindOf(media string) (k kind, rank int) {
	base, _, err := mime.ParseMediaType(media)
	if err != nil {
		base = strings.ToLower(media)
	}
	switch {
	case base == "application/json":
		return kindJSON, 0
	case isJSON(base):
		return kindJSON, 1
	case base == "*/*" || base == "application/*":
		return kindJSON, 2
	case base == "application/x-www-form-urlencoded":
		return kindForm, 3
	case base == "multipart/form-data":
		return kindMultipart, 4
	case isText(base):
		return kindText, 5
	}
	return kindBinary, 6
}

// isJSON reports whether a media type is JSON.
func isJSON(media string) bool {
	base, _, _ := strings.Cut(strings.ToLower(media), ";")
	base = strings.TrimSpace(base)
	return base == "application/json" || base == "text/json" || strings.HasSuffix(base, "+json")
}

// isText reports whether a media type is text.
func isText(base string) bool {
	return strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "+yaml") ||
		slices.Contains([]string{"application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/graphql", "application/x-ndjson", "application/jsonl", "application/sql"}, base)
}

// notParams are headers that a parameter does not set (OpenAPI 3.1, "Fixed Fields" of parameters),
// or that are not about the operation.
var notParams = []string{"Accept", "Content-Type", "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "Proxy-Authorization"}

// inputs reads the parameters and the body of an operation.
func (d *document) inputs(op *operation, at place, o, item object) error {
	all := map[[2]string]object{}
	var order [][2]string
	for _, list := range []any{item["parameters"], o["parameters"]} {
		list, _ := list.([]any)
		for _, p := range list {
			p, err := d.follow(p)
			if err != nil {
				return err
			}
			key := [2]string{textOf(p["in"]), textOf(p["name"])}
			if all[key] == nil {
				order = append(order, key)
			}
			all[key] = p
		}
	}
	taken := map[string]bool{}
	form := object{}
	var required []any
	for _, key := range order {
		p := all[key]
		switch in := key[0]; {
		case key[1] == "" && in != "body":
			return errors.New("a parameter has no name")
		case in == "header" && (slices.Contains(notParams, http.CanonicalHeaderKey(key[1])) || at.headers[http.CanonicalHeaderKey(key[1])]):
		case in == "body":
			op.body = &body{kind: kindJSON, media: d.consumed(o, "application/json"), schema: p["schema"], required: p["required"] == true, about: textOf(p["description"])}
			if k, _ := kindOf(op.body.media); k != kindForm && k != kindMultipart {
				op.body.kind = k
			}
		case in == "formData":
			form[key[1]] = p
			if p["required"] == true {
				required = append(required, key[1])
			}
		case in == "path" || in == "query" || in == "header" || in == "cookie":
			op.params = append(op.params, d.param(p, taken))
		default:
			return errors.New("a parameter is in no known place")
		}
	}
	for _, name := range variables(op.path) { // which the document may have forgotten
		if !slices.ContainsFunc(op.params, func(p param) bool { return p.in == "path" && p.name == name }) {
			op.params = append(op.params, d.param(object{"name": name, "in": "path", "schema": object{"type": "string"}, "type": "string"}, taken))
		}
	}
	if len(form) > 0 {
		op.body = d.formBody(o, form, required)
	} else if op.body == nil {
		var err error
		if op.body, err = d.requestBody(o); err != nil {
			return err
		}
	}
	if op.body != nil {
		op.body.arg = unused("body", "", taken)
	}
	return nil
}

// variables returns the names in braces of a path.
func variables(path string) (names []string) {
	for {
		_, rest, found := strings.Cut(path, "{")
		name, rest, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return names
		}
		names, path = append(names, name), rest
	}
}

// param reads a parameter.
func (d *document) param(p object, taken map[string]bool) param {
	q := param{name: textOf(p["name"]), in: textOf(p["in"]), about: textOf(p["description"]), schema: p["schema"]}
	q.required = p["required"] == true || q.in == "path"
	q.arg = unused(q.name, q.in, taken)
	q.style = "form"
	if q.in == "path" || q.in == "header" {
		q.style = "simple"
	}
	if style := textOf(p["style"]); style != "" {
		q.style = style
	}
	q.explode = q.style == "form"
	if explode, ok := p["explode"].(bool); ok {
		q.explode = explode
	}
	q.reserved = p["allowReserved"] == true
	if content, ok := p["content"].(object); ok {
		for _, media := range slices.Sorted(maps.Keys(content)) {
			inner, _ := content[media].(object)
			q.schema, q.json = inner["schema"], isJSON(media)
		}
	}
	if d.v2 {
		q.schema = p // its keywords stand in the parameter
		styles := map[string]string{"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
		format := textOf(p["collectionFormat"])
		if style := styles[format]; style != "" {
			q.style = style
		}
		q.explode = format == "multi"
	}
	return q
}

// unused returns a name for an argument that no other has, of characters that all hosts take.
func unused(name, in string, taken map[string]bool) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && (strings.ContainsRune("_.-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	arg := strings.Trim(b.String(), "_")
	if arg == "" || len(arg) > maxName {
		arg = cleaned(name, maxName)
	}
	if arg == "" {
		arg = "value"
	}
	for taken[arg] {
		arg = cleaned(arg+"_"+in+"_", maxName-1) + "_"
	}
	taken[arg] = true
	return arg
}

// consumed returns the media type of bodies of version 2.0.
func (d *document) consumed(o object, usual string) string {
	for _, list := range []any{o["consumes"], d.root["consumes"]} {
		if all := texts(list); len(all) > 0 {
			slices.SortStableFunc(all, func(a, b string) int { _, x := kindOf(a); _, y := kindOf(b); return x - y })
			return all[0]
		}
	}
	return usual
}

// formBody returns the body that the form parameters of version 2.0 make.
func (d *document) formBody(o, form object, required []any) *body {
	b := &body{kind: kindForm, media: "application/x-www-form-urlencoded", required: len(required) > 0, binary: map[string]bool{}, encoding: object{}}
	multipart := false
	for _, list := range []any{o["consumes"], d.root["consumes"]} {
		if all := texts(list); len(all) > 0 {
			multipart = slices.Contains(all, "multipart/form-data") && !slices.Contains(all, b.media)
			break
		}
	}
	for name, p := range form {
		p, _ := p.(object)
		b.binary[name] = p["type"] == "file"
		multipart = multipart || b.binary[name]
		b.encoding[name] = object{"style": "form", "explode": p["collectionFormat"] == "multi"}
	}
	if multipart {
		b.kind, b.media = kindMultipart, "multipart/form-data"
	}
	b.schema = object{"type": "object", "properties": withoutRequired(form), "required": required}
	return b
}

// withoutRequired returns parameters as the properties of a schema.
func withoutRequired(form object) object {
	out := object{}
	for name, p := range form {
		inner := object{}
		for key, v := range p.(object) {
			if key != "required" && key != "name" && key != "in" {
				inner[key] = v
			}
		}
		out[name] = inner
	}
	return out
}

// requestBody reads the body of version 3, in the media type that suits best.
func (d *document) requestBody(o object) (*body, error) {
	if o["requestBody"] == nil {
		return nil, nil
	}
	request, err := d.follow(o["requestBody"])
	if err != nil {
		return nil, err
	}
	content, _ := request["content"].(object)
	all := slices.Sorted(maps.Keys(content))
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b string) int { _, x := kindOf(a); _, y := kindOf(b); return x - y })
	media, _ := content[all[0]].(object)
	b := &body{media: all[0], required: request["required"] == true, about: textOf(request["description"]), schema: media["schema"], binary: map[string]bool{}}
	b.kind, _ = kindOf(b.media)
	if strings.Contains(b.media, "*") {
		b.media = "application/octet-stream"
		if b.kind == kindJSON {
			b.media = "application/json"
		}
	}
	b.encoding, _ = media["encoding"].(object)
	if b.kind == kindForm || b.kind == kindMultipart {
		schema, err := d.follow(b.schema)
		if err != nil {
			return b, nil // its schema says it, or there is none
		}
		properties, _ := schema["properties"].(object)
		for name, p := range properties {
			b.binary[name] = d.isBinary(p)
		}
	}
	return b, nil
}

// isBinary reports whether a part of a form, or each item of a list of them, is bytes.
func (d *document) isBinary(v any) bool {
	o, err := d.follow(v)
	if err != nil {
		return false
	}
	if items := o["items"]; items != nil {
		return d.isBinary(items)
	}
	return textOf(o["format"]) == "binary" || textOf(o["contentEncoding"]) != "" && textOf(o["contentEncoding"]) != "base64" || o["contentMediaType"] != nil && o["contentEncoding"] == nil
}

// base64Text is the schema of bytes, which may be those of a file.
func base64Text(about string, file bool) object {
	how := " (base64)"
	if file {
		how = " (base64, or file:///PATH in the roots)"
	}
	return object{"type": "string", "contentEncoding": "base64", "description": strings.TrimSpace(about + how)}
}

// input returns the schema of the arguments.
func (op *operation) input(c *converter) object {
	properties, required := object{}, []string{}
	for _, p := range op.params {
		schema, _ := c.schema(withoutParam(p.schema, c.doc.v2), 1).(object)
		properties[p.arg] = described(c, schema, p.about)
		if p.required {
			required = append(required, p.arg)
		}
	}
	if b := op.body; b != nil {
		properties[b.arg] = described(c, b.input(c), b.about)
		if b.required {
			required = append(required, b.arg)
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	return out
}

// withoutParam returns the keywords of a parameter of version 2.0 that are those of its schema.
func withoutParam(schema any, v2 bool) any {
	p, ok := schema.(object)
	if !v2 || !ok {
		return schema
	}
	return withoutRequired(object{"": p})[""]
}

// described returns a schema with a description, unless it has one.
func described(c *converter, schema object, about string) object {
	if about = strings.TrimSpace(about); about != "" && schema["description"] == nil {
		c.spend(len(about))
		schema["description"] = about
	}
	return schema
}

// input returns the schema of the argument that becomes the body.
func (b *body) input(c *converter) object {
	switch b.kind {
	case kindText:
		return object{"type": "string", "description": strings.TrimSpace(b.about + " (" + b.media + ")")}
	case kindBinary:
		return base64Text(strings.TrimSpace(b.about+" "+b.media), true)
	case kindJSON:
		schema, _ := c.schema(b.schema, 1).(object)
		return schema
	}
	schema := c.root(b.schema)
	if schema["properties"] == nil && schema["type"] == nil {
		schema["type"] = "object"
	}
	properties, _ := schema["properties"].(object)
	for name, property := range properties {
		if property, ok := property.(object); ok && b.binary[name] {
			bytes := base64Text(textOf(property["description"]), b.takesFile(name))
			if property["type"] == "array" {
				bytes = object{"type": "array", "items": bytes}
			}
			properties[name] = bytes
		}
	}
	return schema
}
