package schema

import (
	"net/url"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Address returns the url of the server or, for a document without one, the address of the document:
// requests with what the entry says, its headers and its login, go to that origin only.
func (s Server) Address() string {
	if s.URL == "" && IsAddress(s.OpenAPI) {
		return s.OpenAPI
	}
	return s.URL
}

// IsAddress reports whether a document is at an address, and is no file.
func IsAddress(document string) bool {
	return strings.HasPrefix(document, "http://") || strings.HasPrefix(document, "https://")
}

// reachedBy returns the keys of an entry, of which url is not required beside a document.
func reachedBy(n *syntax.Node, fields []field) []field {
	if !n.Has("openapi") {
		return fields
	}
	var rest []field
	for _, f := range fields {
		f.required = f.required && f.key != "url"
		rest = append(rest, f)
	}
	return rest
}

// checkOpenAPI checks that it is known where the operations of a document are sent.
func (r *report) checkOpenAPI(path string, n *syntax.Node) {
	document := n.Get("openapi")
	if document == nil {
		return
	}
	if !isKnownText(document) {
		return
	}
	at := syntax.Below(path, "openapi")
	if IsAddress(document.Scalar) {
		u, err := url.Parse(document.Scalar)
		if err != nil || u.Hostname() == "" {
			r.fail(document.At, at, "this is not an address", "write it like https://api.example.com/openapi.json, or the path of a file")
		}
		return
	}
	if scheme, _, has := strings.Cut(document.Scalar, "://"); has {
		r.fail(document.At, at, "an OpenAPI document is not read from "+scheme+":", "write an http or https address, or the path of a file")
	} else if !n.Has("url") {
		r.fail(document.At, path, "url is missing: a file does not decide where requests go", `add "url", the base address of the API`)
	}
}
