// Package pins compares the tools of servers with the definitions that a person has approved, or that
// were first listed.
//
// A lock file beside the config has a digest for each tool (lock.go, file.go). A Guard compares
// a server's listing with it: which tools are shown to hosts, and what is reported of the others
// (guard.go). The definitions are kept in a directory, to show changes (definitions.go). The
// package does not know the catalogue, which asks a Guard wherever tools are listed.
package pins

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

// NewTool returns a tool for pinning. raw is a valid object, and page the digest of the page of its view, ""
// if it has none.
func NewTool(name string, raw json.RawMessage, page string) Tool {
	raw = withPage(raw, page)
	return Tool{name, Digest(Definition(raw)), raw}
}

// pinned are the members of a tool that models or hosts use.
var pinned = []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title", view}

// pages are the members of a tool's _meta that name the page which a host shows for its results: of
// MCP Apps, of their draft, and of OpenAI's Apps. Other members of _meta, and icons, are not pinned.
var pages = []string{"ui", "ui/resourceUri", "openai/outputTemplate"}

// Definition returns the pinned members of a tool in canonical form. The order of members and white
// space do not matter.
func Definition(raw json.RawMessage) json.RawMessage {
	var kept []byte
	for name, value := range wire.Members(raw) {
		switch {
		case slices.ContainsFunc(pinned, func(p string) bool { return wire.EqualString(name, p) }):
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

const digestPrefix = "sha256:"

// Digest returns the digest of a definition.
func Digest(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return digestPrefix + hex.EncodeToString(sum[:])
}

func isDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, digestPrefix)
	return ok && len(sum) == 2*sha256.Size && strings.Trim(sum, "0123456789abcdef") == ""
}

// renamed returns the digest of the tool under another name.
func (t Tool) renamed(name string) string {
	return Digest(Definition(wire.Set(Definition(t.Raw), "name", wire.Quote(name))))
}
