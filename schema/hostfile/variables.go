package hostfile

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/dotenv"
	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

var (
	anyReference = lazyregexp.New(`\$?\$\{\{[^}]*\}\}|\$?\$\{[^}]*\}|\{\{\s*\w+\s*\}\}|\{(?:env|file):[^}]+\}|\$\([^)]*\)|\$[A-Za-z_][A-Za-z0-9_]*`)
	wordAtEnd    = lazyregexp.New(`[A-Za-z0-9_-]+$`)
	wordStart    = lazyregexp.New(`([a-z0-9])([A-Z])`)
	envReference = lazyregexp.New(`^env[:.]\s*([A-Za-z_][A-Za-z0-9_]*)(?::-?(.*))?$`)
)

// references converts the references in the texts of the entry to dynmcp's.
func (e *entry) references() {
	for _, m := range e.in.Members {
		e.referencesIn(e.below(m), m.Key, m.Value)
	}
}

func (e *entry) referencesIn(path, key string, n *syntax.Node) {
	switch n.Kind {
	case syntax.Text:
		n.Scalar = e.expand(n.Scalar, func(note string) { e.Warn(n.At, path, note, "") })
		if rest, ok := strings.CutPrefix(n.Scalar, "~"); ok && e.Host.Variables.Tilde && slices.Contains([]string{"command", "args", "cwd"}, key) && (rest == "" || rest[0] == '/') {
			n.Scalar = home() + rest
		}
	case syntax.List:
		var items []*syntax.Node
		for i, item := range n.Items {
			if several := e.several(item); several != nil {
				items = append(items, several...)
				continue
			}
			e.referencesIn(syntax.Item(path, i), key, item)
			items = append(items, item)
		}
		n.Items = items
	case syntax.Object:
		for _, m := range n.Members {
			e.referencesIn(syntax.Below(path, m.Key), "", m.Value)
		}
	}
}

func home() string {
	dir, _ := os.UserHomeDir()
	return dir
}

// expand converts the references in a text, and calls note for each difference from the host.
func (e *entry) expand(s string, note func(string)) string {
	v := e.Host.Variables
	return anyReference().ReplaceAllStringFunc(s, func(ref string) string {
		inner := strings.TrimSpace(strings.Trim(ref, "${}()"))
		switch {
		case strings.HasPrefix(ref, "$$"): // escaped
		case strings.HasPrefix(ref, "${{"):
			name := reference.VariableName(wordAtEnd().FindString(inner))
			note(fmt.Sprintf("the host takes %s from its secrets; dynmcp takes it from the variable %s", inner, name))
			return "${" + name + "}"
		case strings.HasPrefix(ref, "{{") && v.Mustache:
			note(fmt.Sprintf("the host inserts %s of each of its users; dynmcp takes it from the variable %s", inner, inner))
			return "${" + inner + "}"
		case strings.HasPrefix(ref, "{env:") && v.Braces:
			return "${" + strings.TrimPrefix(inner, "env:") + ":-}"
		case strings.HasPrefix(ref, "{file:") && v.Braces:
			return "${file:" + e.relative(strings.TrimPrefix(inner, "file:")) + "}"
		case strings.HasPrefix(ref, "$(") && v.Commands:
			return "${cmd:" + inner + "}"
		case strings.HasPrefix(ref, "${"):
			return e.inBraces(ref, inner, note)
		case strings.HasPrefix(ref, "$") && v.Bare && ref[1] != '(':
			return "${" + inner + "}"
		}
		return ref
	})
}

// relative returns a path of a host's file: it is relative to that file's folder.
func (e *entry) relative(path string) string {
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
		path = filepath.Join(e.Dir, path)
	}
	return path
}

// inBraces converts ${…}.
func (e *entry) inBraces(ref, inner string, note func(string)) string {
	kind, id, _ := strings.Cut(inner, ":")
	if m := envReference().FindStringSubmatch(inner); m != nil {
		if m[2] != "" {
			return "${" + m[1] + ":-" + m[2] + "}"
		}
		return "${" + m[1] + "}"
	}
	if path, ok := e.folderOf(kind); ok {
		note(fmt.Sprintf("${%s} is only known to the host; here it is %s", inner, path))
		return path
	}
	if key, ok := strings.CutPrefix(inner, "user_config."); ok {
		kind, id = "user_config", key
	}
	switch kind {
	case "input", "prompt", "promptString", "user_config":
		name := reference.VariableName(id)
		if e.Host.Name == "smithery" { // apiToken
			name = reference.VariableName(wordStart().ReplaceAllString(id, "${1}_${2}"))
		}
		note(fmt.Sprintf("the host asks for %s; dynmcp takes it from the variable %s", id, name))
		if fallback, ok := e.fallback(id); ok {
			name += ":-" + fallback
		}
		return "${" + name + "}"
	case "config", "secret", "secrets", "vault":
		if id == "" {
			return ref
		}
		name := reference.VariableName(kind + "_" + id)
		note(fmt.Sprintf("the host inserts its %s; dynmcp takes it from the variable %s", inner, name))
		return "${" + name + "}"
	case "command":
		if e.Host.Name == "vscode" && id != "" {
			name := reference.VariableName(inner)
			note(fmt.Sprintf("the host runs its command %s; dynmcp takes the result from the variable %s", id, name))
			return "${" + name + "}"
		}
	}
	if folder := e.folders(ref); e.Host.Variables.Fixed && folder == ref {
		return "$" + ref
	} else if e.Host.Variables.Fixed {
		return folder
	}
	return ref
}

// folderOf returns the path that hosts insert for a name.
func (e *entry) folderOf(name string) (string, bool) {
	switch name {
	case "userHome":
		return home(), true
	case "workspaceFolder", "workspaceRoot", "workspacePath", "workspace", "fileWorkspaceFolder", "projectRoot", "CLAUDE_PROJECT_DIR", "containerWorkspaceFolder", "localWorkspaceFolder",
		"extensionPath", "CLAUDE_PLUGIN_ROOT", "__dirname":
		return e.Dir, true
	case "workspaceFolderBasename":
		return filepath.Base(e.Dir), true
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	}
	return "", false
}

// ask returns what a file says of a value that the host asks for, nil if it says nothing.
func (f *File) ask(id string) *syntax.Node {
	for _, n := range f.root.ItemsOf("inputs") {
		if scalar(n.Get("id")) == id {
			return n
		}
	}
	for _, keys := range [][]string{{"user_config"}, {"userConfig"}, {"startCommand", "configSchema", "properties"}} {
		if n := below(f.root, append(keys, id)); n != nil {
			return n
		}
	}
	return nil
}

// fallback returns the default of a value that the host asks for.
func (f *File) fallback(id string) (string, bool) {
	asked, d := f.ask(id), f.defaultOf(id)
	if f.Host.Name == "smithery" && d == nil {
		return "", !f.isRequired(id)
	}
	if asked == nil && d == nil {
		return "", false
	}
	if d == nil || d.Kind == syntax.List || d.Kind == syntax.Object || d.Kind == syntax.Null {
		required := asked.Get("required")
		return "", below(f.root, []string{"user_config", id}) != nil && scalar(required) != "true" && asked.Get("multiple") == nil && (d == nil || d.Kind != syntax.List)
	}
	value := f.folders(d.Scalar)
	return value, !strings.Contains(value, "}")
}

// defaultOf returns what the file says a value is if nobody gives another.
func (f *File) defaultOf(id string) *syntax.Node {
	if d := f.defaults[id]; d != nil {
		return d
	}
	return f.ask(id).Get("default")
}

// folders replaces the folders that a bundle may name.
func (f *File) folders(s string) string {
	return strings.NewReplacer("${HOME}", home(), "${DESKTOP}", filepath.Join(home(), "Desktop"), "${DOCUMENTS}", filepath.Join(home(), "Documents"),
		"${DOWNLOADS}", filepath.Join(home(), "Downloads"), "${__dirname}", f.Dir).Replace(s)
}

// several returns the items of a default that is a list, for an item that is only a reference to it.
func (e *entry) several(item *syntax.Node) (items []*syntax.Node) {
	key, ok := strings.CutPrefix(strings.TrimSuffix(item.Scalar, "}"), "${user_config.")
	if asked := e.ask(key); ok && asked != nil {
		for _, d := range asked.ItemsOf("default") {
			items = append(items, text(item, e.folders(d.Scalar)))
		}
	}
	return items
}

// envFile is read once the entry's own variables are known, which are stronger.
func (*entry) envFile(syntax.Member) {}

// variablesOfFile adds the variables of the file that the entry names.
func (e *entry) variablesOfFile() {
	for _, key := range []string{"envFile", "env_file"} {
		m, ok := e.in.Member(key)
		if !ok || m.Value.Kind != syntax.Text || m.Value.Scalar == "" || strings.Contains(m.Value.Scalar, "${") {
			continue
		}
		path := e.relative(m.Value.Scalar)
		if rest, ok := strings.CutPrefix(path, "~"); ok {
			path = home() + rest
		}
		data, err := regular.Read(context.Background(), path, syntax.MaxSize)
		if err != nil {
			e.Lack(m.At, e.below(m), "there is no file "+path, "write it, or leave the key out")
			continue
		}
		variables, err := dotenv.Parse(path, data)
		if err != nil {
			e.Lack(m.At, e.below(m), path+" is not a .env file", "")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			e.Secret(variables[name])
			e.set(m, "env", syntax.Member{Key: name, At: m.At, Value: text(m.Value, strings.ReplaceAll(variables[name], "${", "$${"))})
		}
		if len(variables) > 0 {
			e.Note(m.At, e.below(m), "the variables of "+path+" are copied into env")
		}
	}
}
