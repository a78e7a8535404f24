package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// accept prefers JSON; the entry's header of this name wins.
const accept = "application/json, text/plain;q=0.9, */*;q=0.8"

// request returns the HTTP request of a call. Its error is about the arguments.
func (op *operation) request(ctx context.Context, arguments object) (*http.Request, error) {
	path := op.path
	var query, cookies []string
	header := http.Header{"Accept": {accept}}
	for _, p := range op.params {
		v, ok := arguments[p.arg]
		if !ok || v == nil {
			if p.in == "path" {
				return nil, fmt.Errorf("the argument %s is missing, a part of the path", p.arg)
			}
			continue
		}
		switch p.in {
		case "path":
			text := p.inPath(v)
			if text == "" || text == "." || text == ".." {
				return nil, fmt.Errorf("the argument %s may not be %q, because it is a part of the path", p.arg, text)
			}
			path = strings.ReplaceAll(path, "{"+p.name+"}", text)
		case "query":
			query = append(query, p.pairs(v, p.escape)...)
		case "header":
			header.Set(p.name, p.joined(v, func(s string) string { return s }))
		case "cookie":
			cookies = append(cookies, p.pairs(v, url.QueryEscape)...)
		}
	}
	if len(cookies) > 0 {
		header.Set("Cookie", strings.Join(cookies, "; "))
	}
	body, media, err := op.content(arguments)
	if err != nil {
		return nil, err
	}
	u := *op.base
	raw := strings.TrimSuffix(u.EscapedPath(), "/") + path
	if u.Path, err = url.PathUnescape(raw); err != nil {
		return nil, fmt.Errorf("the path %.100s is not valid", path)
	}
	if u.RawPath = raw; u.Path == raw {
		u.RawPath = ""
	}
	if u.RawQuery != "" { // of the entry
		query = append([]string{u.RawQuery}, query...)
	}
	u.RawQuery = strings.Join(query, "&")
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, op.method, u.String(), reader)
	if err != nil {
		return nil, errors.New("no address can be made of these arguments")
	}
	req.Header = header
	if media != "" {
		header.Set("Content-Type", media)
	}
	return req, nil
}

// scalar returns the text of a value in a parameter.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case nil:
		return ""
	}
	text, _ := compact(v)
	return string(text)
}

// escape escapes a value of a query.
func (p param) escape(text string) string {
	if !p.reserved {
		return url.QueryEscape(text)
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(":/?@!$'()*,;", c) >= 0 { // not # & = + [ ], which end or split it
			b.WriteByte(c)
		} else {
			b.WriteString(url.QueryEscape(text[i : i+1]))
		}
	}
	return b.String()
}

// members returns names and texts of an object, by name.
func members(o object, escape func(string) string) (pairs [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		pairs = append(pairs, [2]string{escape(name), escape(scalar(o[name]))})
	}
	return pairs
}

// joined returns a value in the style simple (RFC 6570): a,b or name,value or, exploded, name=value.
func (p param) joined(v any, escape func(string) string) string {
	if p.json {
		return escape(scalarJSON(v))
	}
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			parts = append(parts, escape(scalar(item)))
		}
	case object:
		between := ","
		if p.explode {
			between = "="
		}
		for _, m := range members(v, escape) {
			parts = append(parts, m[0]+between+m[1])
		}
	default:
		return escape(scalar(v))
	}
	return strings.Join(parts, ",")
}

func scalarJSON(v any) string {
	text, _ := compact(v)
	return string(text)
}

// inPath returns a value in the path, in the style simple, label or matrix.
func (p param) inPath(v any) string {
	text := p.joined(v, url.PathEscape)
	list, isList := v.([]any)
	o, isObject := v.(object)
	switch {
	case p.style == "label" && p.explode:
		return "." + strings.ReplaceAll(text, ",", ".")
	case p.style == "label":
		return "." + text
	case p.style == "matrix" && p.explode && isList:
		text = ""
		for _, item := range list {
			text += ";" + p.name + "=" + url.PathEscape(scalar(item))
		}
		return text
	case p.style == "matrix" && p.explode && isObject:
		text = ""
		for _, m := range members(o, url.PathEscape) {
			text += ";" + m[0] + "=" + m[1]
		}
		return text
	case p.style == "matrix":
		return ";" + p.name + "=" + text
	}
	return text
}

// pairs returns a value as name=value of a query, a form or a cookie.
func (p param) pairs(v any, escape func(string) string) (all []string) {
	name := url.QueryEscape(p.name)
	if p.json {
		return []string{name + "=" + escape(scalarJSON(v))}
	}
	switch v := v.(type) {
	case []any:
		if p.style == "deepObject" {
			return deep(name, v, escape)
		}
		if p.explode {
			for _, item := range v {
				all = append(all, name+"="+escape(scalar(item)))
			}
			return all
		}
		var texts []string
		for _, item := range v {
			texts = append(texts, escape(scalar(item)))
		}
		return []string{name + "=" + strings.Join(texts, p.separator())}
	case object:
		switch {
		case p.style == "deepObject":
			return deep(name, v, escape)
		case p.explode:
			for _, m := range members(v, escape) {
				all = append(all, m[0]+"="+m[1])
			}
			return all
		}
		var texts []string
		for _, m := range members(v, escape) {
			texts = append(texts, m[0], m[1])
		}
		return []string{name + "=" + strings.Join(texts, p.separator())}
	}
	return []string{name + "=" + escape(scalar(v))}
}

// separator stands between the values of one pair.
func (p param) separator() string {
	switch p.style {
	case "spaceDelimited":
		return "%20"
	case "tabDelimited":
		return "%09"
	case "pipeDelimited":
		return "|"
	}
	return ","
}

// deep returns a value as name[key]=value, at any depth.
func deep(name string, v any, escape func(string) string) (all []string) {
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, deep(name+"["+url.QueryEscape(key)+"]", v[key], escape)...)
		}
	case []any:
		for i, item := range v {
			if _, nested := item.(object); nested {
				all = append(all, deep(fmt.Sprintf("%s[%d]", name, i), item, escape)...)
			} else {
				all = append(all, deep(name+"[]", item, escape)...)
			}
		}
	default:
		all = []string{name + "=" + escape(scalar(v))}
	}
	return all
}

// content returns the body of a request and its media type.
func (op *operation) content(arguments object) (text []byte, media string, err error) {
	b := op.body
	if b == nil {
		return nil, "", nil
	}
	v, ok := arguments[b.arg]
	if !ok {
		if b.required {
			return nil, "", fmt.Errorf("the argument %s is missing", b.arg)
		}
		return nil, "", nil
	}
	switch b.kind {
	case kindText:
		return []byte(scalar(v)), b.media, nil
	case kindBinary:
		text, err = decoded(b.arg, v)
		return text, b.media, err
	case kindForm, kindMultipart:
		fields, isObject := v.(object)
		if !isObject {
			return nil, "", fmt.Errorf("the argument %s is not an object", b.arg)
		}
		if b.kind == kindMultipart {
			return b.parts(fields)
		}
		return []byte(strings.Join(b.pairs(fields), "&")), b.media, nil
	}
	text, err = compact(v)
	return text, b.media, err
}

// decoded returns the bytes of a text in base64, or of a file.
func decoded(arg string, v any) ([]byte, error) {
	if f, ok := v.(given); ok {
		return f.text, nil
	}
	text, _ := v.(string)
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil || text == "" && v != "" {
		return nil, fmt.Errorf("the argument %s is not base64", arg)
	}
	return bytes, nil
}

// pairs returns the fields of a form.
func (b *body) pairs(fields object) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		encoding, _ := b.encoding[name].(object)
		p := param{name: name, style: "form", explode: true}
		_, isObject := fields[name].(object)
		if style := textOf(encoding["style"]); style != "" {
			p.style, p.explode = style, style == "form"
			if explode, ok := encoding["explode"].(bool); ok {
				p.explode = explode
			}
		} else {
			p.json = isObject
		}
		all = append(all, p.pairs(fields[name], url.QueryEscape)...)
	}
	return all
}

// parts returns a multipart body.
func (b *body) parts(fields object) (text []byte, media string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values, isList := fields[name].([]any)
		if !isList {
			values = []any{fields[name]}
		}
		for _, v := range values {
			if err := b.part(w, name, v); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

// unquoted makes a text a part of a quoted one.
var unquoted = strings.NewReplacer("\\", "\\\\", `"`, `\"`, "\r", "", "\n", "")

func (b *body) part(w *multipart.Writer, name string, v any) (err error) {
	encoding, _ := b.encoding[name].(object)
	kind, _, _ := strings.Cut(textOf(encoding["contentType"]), ",")
	quoted := unquoted.Replace(name)
	header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + quoted + `"`}}
	var text []byte
	_, isObject := v.(object)
	switch {
	case b.binary[name]:
		if text, err = decoded(b.arg+"."+name, v); err != nil {
			return err
		}
		filename := quoted
		if f, ok := v.(given); ok {
			filename = unquoted.Replace(f.name)
		}
		header["Content-Disposition"][0] += `; filename="` + filename + `"`
		if kind == "" || strings.Contains(kind, "*") {
			kind = http.DetectContentType(text)
		}
	case isObject || isJSON(kind):
		if text, err = compact(v); err != nil {
			return err
		}
		if kind == "" {
			kind = "application/json"
		}
	default:
		text = []byte(scalar(v))
	}
	if kind != "" && !strings.ContainsAny(kind, "\r\n*") {
		header.Set("Content-Type", strings.TrimSpace(kind))
	}
	part, err := w.CreatePart(header)
	if err == nil {
		_, err = part.Write(text)
	}
	return err
}
