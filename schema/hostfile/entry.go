package hostfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Report takes what a conversion has to say.
type Report interface {
	// Warn says what is left out or has another meaning here, Fail what is wrong with an entry.
	Warn(at syntax.Pos, path, what, hint string)
	Fail(at syntax.Pos, path, what, hint string)
	// Lack says what an entry needs that is not there now. Note says what a host does that is done
	// here, too.
	Lack(at syntax.Pos, path, what, hint string)
	Note(at syntax.Pos, path, what string)
	// Leave says that an entry is left out, and why.
	Leave(at syntax.Pos, path, name, why string)
	// Secret says that a value must never be shown.
	Secret(value string)
}

// OwnKeys are the keys of dynmcp's entries.
type OwnKeys struct {
	All, Stdio, HTTP []string
	// Reach are those of modules that say how to reach a server.
	Reach []string
	// Strict makes it an error if a key looks like a misspelt one.
	Strict bool
}

// limiting are keys of dynmcp that take something from a server: one that is misspelt is an error,
// since otherwise nothing would be taken.
var limiting = []string{"tool_filter", "sandbox", "disabled", "isolation", "command", "url"}

// An entry is one that is converted.
type entry struct {
	*File
	Report
	own  OwnKeys
	path string
	in   *syntax.Node // as the host writes it
	out  *syntax.Node // under dynmcp's keys
}

// convert returns an entry under dynmcp's keys. Paths of what is reported keep the host's.
func (e *entry) convert() *syntax.Node {
	e.flatten()
	out := *e.in
	out.Members = nil
	e.out = &out
	e.references()
	for _, m := range e.in.Members {
		meaning, known := e.Host.meaning(m.Key)
		switch {
		case m.Value.Kind == syntax.Null:
		case !known:
			e.other(m)
		case slices.ContainsFunc(meaning.Unless, e.in.Has):
			e.same(m, meaning)
		case meaning.With != nil:
			meaning.With(e, m)
		case meaning.To != "":
			e.add(m, meaning.To, m.Value)
		case meaning.Why == silent || isEmpty(m.Value) || m.Value.Kind == syntax.Boolean && m.Value.Scalar == "false":
		default:
			e.notRead(m, meaning.Why)
		}
	}
	e.variablesOfFile()
	e.splitCommand()
	e.dropMisplaced()
	e.folder()
	return e.out
}

// flatten lifts the members of a transport that is an object, as of Continue.
func (e *entry) flatten() {
	e.document()
	t, ok := e.in.Member("transport")
	if !ok || t.Value.Kind != syntax.Object {
		return
	}
	flat := *e.in
	flat.Members = slices.DeleteFunc(slices.Clone(e.in.Members), func(m syntax.Member) bool { return m.Key == "transport" })
	for _, m := range t.Value.Members {
		m.Written = "transport." + m.Key
		flat.Members = append(flat.Members, m)
	}
	e.in = &flat
}

// document makes the openapi of MCPHub, an object beside the type openapi, the address of the document.
func (e *entry) document() {
	n := e.in.Get("openapi")
	if n == nil || scalar(e.in.Get("type")) != "openapi" && n.Kind != syntax.Object {
		return
	}
	flat := *e.in
	flat.Members = slices.DeleteFunc(slices.Clone(e.in.Members), func(m syntax.Member) bool { return m.Key == "type" && m.Value.Scalar == "openapi" })
	for i, m := range flat.Members {
		if at := n.Get("url"); m.Key == "openapi" && at != nil {
			flat.Members[i].Value, flat.Members[i].Written = at, "openapi.url"
		}
	}
	e.in = &flat
}

// other handles a key that is not in the table: it is one of ours, or one that only a host knows.
func (e *entry) other(m syntax.Member) {
	near := nearest.Word(m.Key, e.own.All)
	switch {
	case m.Key == "sandbox" && isHostSandbox(m.Value):
		e.notRead(m, "it is written as for VS Code; dynmcp's own has read, write and network (docs/sandbox.md)")
	case isEmpty(m.Value) && m.Value.Kind == syntax.Text, m.Key == "description" && m.Value.Kind != syntax.Text, strings.HasPrefix(m.Key, "$"), strings.HasPrefix(m.Key, "_"), strings.HasPrefix(m.Key, "//"):
	case slices.Contains(e.own.All, m.Key), near != "" && e.Host == Other && e.own.Strict, slices.Contains(limiting, near) && (e.Host == Other || !looksLikeEntry(e.in)):
		e.out.Members = append(e.out.Members, m) // the decoder checks it
	case near != "" && e.Host == Other:
		e.Warn(m.At, e.below(m), "this key of the host is not read", `did you mean "`+near+`"?`)
	case !isEmpty(m.Value):
		e.Warn(m.At, e.below(m), "this key of the host is not read", "")
	}
}

// isHostSandbox reports whether a sandbox has the form of VS Code. Any other form is ours: if
// one of ours were left out by mistake, nothing would be limited.
func isHostSandbox(n *syntax.Node) bool {
	network := n.Get("network")
	return n.Has("filesystem") || network != nil && network.Kind == syntax.Object
}

// splitCommand splits a command that is a list: its first item becomes the command, the
// others come before the args.
func (e *entry) splitCommand() {
	n := e.out
	keyIs := func(key string) func(syntax.Member) bool { return func(m syntax.Member) bool { return m.Key == key } }
	i := slices.IndexFunc(n.Members, keyIs("command"))
	if i < 0 || n.Members[i].Value.Kind != syntax.List {
		return
	}
	command, words := &n.Members[i], n.Members[i].Value.Items
	if len(words) == 0 {
		e.Fail(command.Value.At, syntax.Below(e.path, "command"), "this list is empty", "begin it with the program to run")
		words = []*syntax.Node{{Kind: syntax.Text, At: command.Value.At, Unresolved: true}}
	}
	command.Value = words[0]
	args := &syntax.Node{Kind: syntax.List, At: command.At, Items: words[1:]}
	switch j := slices.IndexFunc(n.Members, keyIs("args")); {
	case len(args.Items) == 0:
	case j < 0:
		n.Members = append(n.Members, syntax.Member{Key: "args", Written: "command", At: command.At, Value: args})
	case n.Members[j].Value.Kind == syntax.List: // otherwise the decoder reports it
		args.At, args.Items = n.Members[j].Value.At, slices.Concat(args.Items, n.Members[j].Value.Items)
		n.Members[j].Value = args
	}
}

// dropMisplaced removes keys of the other kind of server: some hosts write empty args beside
// a url.
func (e *entry) dropMisplaced() {
	n := e.out
	both := n.Has("command") && n.Has("url")
	transport := scalar(n.Get("transport"))
	switch {
	case both && transport == "stdio", both && isEmpty(n.Get("url")):
		n.Members = slices.DeleteFunc(n.Members, func(m syntax.Member) bool { return m.Key == "url" })
	case both && (isEmpty(n.Get("command")) || transport == "streamable-http" || transport == "sse"):
		n.Members = slices.DeleteFunc(n.Members, func(m syntax.Member) bool { return m.Key == "command" })
	case both:
		return
	}
	own := e.own.HTTP
	switch {
	case transport == "stdio", transport == "" && n.Has("command"):
		transport, own = "stdio", e.own.Stdio
	case transport == "" && n.Has("url"):
		transport = "streamable-http"
	case transport == "":
		return
	}
	n.Members = slices.DeleteFunc(n.Members, func(m syntax.Member) bool {
		misplaced := slices.Contains(e.own.All, m.Key) && !slices.Contains(own, m.Key)
		if misplaced && !isEmpty(m.Value) {
			e.Warn(m.At, syntax.Below(e.path, m.Name()), fmt.Sprintf("this does not go with transport %s and is left out", transport), "")
		}
		return misplaced
	})
}

// folder makes the folder of a program complete: it is relative to the project.
func (e *entry) folder() {
	cwd := e.out.Get("cwd")
	if cwd == nil || cwd.Kind != syntax.Text || cwd.Scalar == "" || filepath.IsAbs(cwd.Scalar) || strings.HasPrefix(cwd.Scalar, "~") || strings.Contains(cwd.Scalar, "${") || !e.Project {
		return
	}
	*cwd = *text(cwd, filepath.Join(e.Dir, filepath.FromSlash(cwd.Scalar)))
}

func (e *entry) below(m syntax.Member) string { return syntax.Below(e.path, m.Name()) }

func (e *entry) notRead(m syntax.Member, why string) {
	e.Warn(m.At, e.below(m), "this is not read", why)
}

// same handles a key beside a stronger one of the same meaning.
func (e *entry) same(m syntax.Member, meaning Meaning) {
	i := slices.IndexFunc(meaning.Unless, e.in.Has)
	if e.in.Get(meaning.Unless[i]).Scalar != m.Value.Scalar {
		e.Warn(m.At, e.below(m), "this is ignored", meaning.Unless[i]+" says the same")
	}
}

// add adds a member under a key of ours, unless it is there.
func (e *entry) add(m syntax.Member, key string, value *syntax.Node) {
	if e.out.Has(key) {
		return
	}
	if key != m.Key && m.Written == "" {
		m.Written = m.Key
	}
	m.Key, m.Value = key, value
	e.out.Members = append(e.out.Members, m)
}

// set adds a member to the object at a key of ours, unless that has it.
func (e *entry) set(m syntax.Member, key string, inner syntax.Member) {
	e.add(m, key, &syntax.Node{Kind: syntax.Object, At: m.Value.At})
	if object := e.out.Get(key); object.Kind == syntax.Object && !object.Has(inner.Key) {
		object.Members = append(object.Members, inner)
	}
}
