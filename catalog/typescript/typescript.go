// Package typescript writes JSON Schemas as types in the manner of TypeScript, which take
// fewer tokens than JSON and say the same:
//
//	{ // What to look for.
//	 query: string // Words. @minLength 1
//	 order?: "asc" | "desc" = "asc"
//	 perPage?: integer = 30 // @minimum 1 @maximum 100
//	 ...
//	}
//
// The value after "=" is the default. "..." says that the object may have other members. What
// a type cannot express follows the description: @ with the keyword, and its value in JSON or
// as a single word.
//
// Types are in node.go and object.go, comments in comment.go. Invisible characters are left
// out of descriptions, and escaped in values.
package typescript

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Type writes a schema as a type, followed by the types that it refers to. complete is false
// if the text says less than the schema, which has references to other schemas or duplicate
// members, or is none at all.
func Type(schema json.RawMessage) (text string, complete bool) {
	w := newWriter(schema)
	if !w.readable() {
		return "", false
	}
	text = w.node(w.root, 0, true, "").line() + w.named()
	return text, !w.failed
}

// Signature writes a tool as the declaration of a function, with a comment before it. Without
// an output schema the function has no result. complete is as for Type.
func Signature(name, description string, input, output json.RawMessage) (text string, complete bool) {
	in, out := newWriter(input), newWriter(output)
	out.names = in.names // no two types have one name
	if !in.readable() || len(output) > 0 && !out.readable() {
		return "", false
	}
	var b strings.Builder
	if about := strings.TrimSpace(display.Clean(description)); about != "" {
		b.WriteString("/* " + strings.ReplaceAll(about, "*/", `*\/`) + " */\n")
	}
	b.WriteString("function " + name + "(input: " + in.node(in.root, 0, true, "").part(union) + ")")
	if len(output) > 0 {
		b.WriteString(": " + out.node(out.root, 0, true, "").part(union))
	}
	b.WriteString(in.named())
	if len(output) > 0 {
		b.WriteString(out.named())
	}
	return b.String(), !in.failed && !out.failed
}

// A writer writes one schema.
type writer struct {
	root   json.RawMessage
	names  map[string]bool   // of types that are taken
	refs   map[string]string // reference → name of its type
	queue  []string          // references whose types are still to be written
	failed bool              // something cannot be expressed
}

func newWriter(root json.RawMessage) *writer {
	names := map[string]bool{}
	for _, name := range strings.Fields("string number integer boolean null object any never input output") {
		names[name] = true
	}
	return &writer{root: root, names: names, refs: map[string]string{}}
}

// readable reports whether the root is an object in JSON.
func (w *writer) readable() bool {
	return wire.Valid(w.root) && bytes.HasPrefix(bytes.TrimLeft(w.root, " \t\r\n"), []byte("{"))
}

// named writes the types that are referred to, also by each other.
func (w *writer) named() string {
	var b strings.Builder
	for len(w.queue) > 0 {
		ref := w.queue[0]
		w.queue = w.queue[1:]
		b.WriteString("\ntype " + w.refs[ref] + " = " + w.node(w.target(ref), 0, false, "").line())
	}
	return b.String()
}

// reference returns the name of the type at a reference, "" if that is not in the schema.
func (w *writer) reference(ref string) string {
	if name := w.refs[ref]; name != "" {
		return name
	}
	if w.target(ref) == nil {
		return ""
	}
	name := typeName(strings.Split(ref, "/"))
	for i := 2; w.names[name]; i++ {
		name = strings.TrimRight(name, "0123456789") + strconv.Itoa(i)
	}
	w.names[name] = true
	w.refs[ref] = name
	w.queue = append(w.queue, ref)
	return name
}

// target returns the schema at a reference, nil if absent.
func (w *writer) target(ref string) json.RawMessage {
	path, local := strings.CutPrefix(ref, "#/")
	if !local || strings.Contains(path, "%") {
		return nil
	}
	at := w.root
	for token := range strings.SplitSeq(path, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if bytes.HasPrefix(at, []byte("[")) {
			at = element(at, token)
			continue
		}
		at = wire.Get(at, token)
	}
	return at
}

// element returns the element of an array at a token of a JSON Pointer.
func element(array json.RawMessage, token string) json.RawMessage {
	n, err := strconv.Atoi(token)
	for value := range wire.Elements(array) {
		if n--; n < 0 && err == nil {
			return value
		}
	}
	return nil
}

// typeName makes a name from the last words of a reference.
func typeName(tokens []string) string {
	for i := len(tokens) - 1; i > 0; i-- {
		name := strings.Map(func(r rune) rune {
			if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' {
				return r
			}
			return -1
		}, tokens[i])
		if name != "" && !unicode.IsDigit(rune(name[0])) && tokens[i] != "items" && tokens[i] != "properties" {
			return name
		}
	}
	return "Type"
}
