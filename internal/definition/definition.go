// Package definition compares the definitions of tools: by a digest of those members that models or hosts
// use, in canonical form, and of the page that hosts show for a tool.
package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Tool is a tool in a server's listing.
type Tool struct {
	Name   string
	Digest string // of its definition
	Raw    json.RawMessage
}

// New returns a tool. raw is a valid object, and page the digest of the page of its view, ""
// if it has none.
func New(name string, raw json.RawMessage, page string) Tool {
	raw = withPage(raw, page)
	return Tool{name, Digest(Of(raw)), raw}
}

// used are the members of a tool that models or hosts use.
var used = []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title", view}

// pages are the members of a tool's _meta that name the page which a host shows for its results: of
// MCP Apps, of their draft, and of OpenAI's Apps. Other members of _meta, and icons, do not count.
var pages = []string{"ui", "ui/resourceUri", "openai/outputTemplate"}

// Of returns the members of a tool that count, in canonical form. The order of members and white
// space do not matter.
func Of(raw json.RawMessage) json.RawMessage {
	var kept []byte
	for name, value := range wire.Members(raw) {
		switch {
		case slices.ContainsFunc(used, func(p string) bool { return wire.EqualString(name, p) }):
		case wire.EqualString(name, "_meta"):
			if value = only(value, pages); value == nil {
				continue
			}
		default:
			continue
		}
		kept = append(append(append(append(kept, ','), name...), ':'), value...)
	}
	if kept == nil {
		return json.RawMessage("{}")
	}
	kept[0] = '{'
	return appendCanonical(nil, append(kept, '}'))
}

// only returns an object with those members of obj that have one of the names, nil if none has.
func only(obj []byte, names []string) []byte {
	var others []string
	found := false
	for key := range wire.Members(obj) {
		name, _ := wire.Text(key)
		if slices.Contains(names, name) {
			found = true
		} else {
			others = append(others, name)
		}
	}
	if !found {
		return nil
	}
	return wire.Delete(obj, others...)
}

const prefix = "sha256:"

// Digest returns the digest of a definition.
func Digest(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return prefix + hex.EncodeToString(sum[:])
}

// IsDigest reports whether a text has the form of a digest.
func IsDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, prefix)
	return ok && len(sum) == 2*sha256.Size && strings.Trim(sum, "0123456789abcdef") == ""
}

// DigestAs returns the digest of the tool under another name.
func (t Tool) DigestAs(name string) string {
	return Digest(Of(wire.Set(Of(t.Raw), "name", wire.Quote(name))))
}
