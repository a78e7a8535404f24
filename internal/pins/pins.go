// Package pins holds servers to the definitions of their tools that a person has approved,
// or that were there when they were first listed.
//
// A lock file beside the config has a digest for each tool (lock.go, file.go). A Guard
// compares what a server lists with it: which tools hosts may know, and what is to be said
// of the others (guard.go). What the digests are of is kept in a directory, so that it can
// be shown what has changed (definitions.go). The package knows no catalogue: that asks a
// Guard wherever tools are listed.
package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Tool is what a server lists under one name.
type Tool struct {
	Name   string
	Digest string // of its definition
	Raw    json.RawMessage
}

// NewTool returns a tool as it is pinned. raw is a valid object.
func NewTool(name string, raw json.RawMessage) Tool {
	return Tool{name, Digest(Definition(raw)), raw}
}

// pinned are the members of a tool that a model or a host acts on.
var pinned = []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}

// Definition returns the pinned members of a tool in canonical form. Two tools have one
// definition if they say the same, in whatever order and with whatever white space.
func Definition(raw json.RawMessage) json.RawMessage {
	var kept []byte
	for name, value := range wire.Members(raw) {
		for _, p := range pinned {
			if wire.EqualString(name, p) {
				kept = append(append(append(append(kept, ','), name...), ':'), value...)
				break
			}
		}
	}
	if kept == nil {
		return json.RawMessage("{}")
	}
	kept[0] = '{'
	return appendCanonical(nil, append(kept, '}'))
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

// renamed returns the digest that a tool would have under another name.
func (t Tool) renamed(name string) string {
	return Digest(Definition(wire.Set(Definition(t.Raw), "name", wire.Quote(name))))
}
