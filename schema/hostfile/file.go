package hostfile

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// An Entry is a server of a file, under dynmcp's keys.
type Entry struct {
	syntax.Member
	// List are the keys that lead to the object that holds it; Path is its path, for messages.
	List []string
	Path string
	// Host, Dir and Project are those of the file that has it.
	*File
}

// Entries converts the servers of the file, in its order.
func (f *File) Entries(own OwnKeys, r Report) []Entry {
	return f.entries(f.unique(f.written(r)), own, r)
}

// EntriesAt converts the servers to which keys lead, alone.
func (f *File) EntriesAt(keys []string, own OwnKeys, r Report) []Entry {
	if !isList(below(f.root, keys)) {
		return nil
	}
	return f.entries(f.listed(keys, r), own, r)
}

func (f *File) entries(all []Entry, own OwnKeys, r Report) (out []Entry) {
	off := f.switchedOff()
	for _, entry := range all {
		if entry.Value.Kind != syntax.Object {
			out = append(out, entry) // the decoder reports it
			continue
		}
		if !slices.ContainsFunc(own.Reach, entry.Value.Has) && f.isUnreachable(entry.Value) {
			r.Leave(entry.At, entry.Path, entry.Key, "nothing says how to reach it outside of the host")
			continue
		}
		entry.Value = entry.Convert(own, r)
		if why := off(entry.Key); why != "" {
			entry.Value.Members = append(slices.DeleteFunc(entry.Value.Members, func(m syntax.Member) bool { return m.Key == "disabled" }),
				syntax.Member{Key: "disabled", At: entry.At, Value: &syntax.Node{Kind: syntax.Boolean, At: entry.At, Scalar: "true"}})
			r.Note(entry.At, entry.Path, fmt.Sprintf("%s does not use it: %s", f.Host.Title, why))
		}
		out = append(out, entry)
	}
	return out
}

// Convert returns the entry under dynmcp's keys.
func (e Entry) Convert(own OwnKeys, r Report) *syntax.Node {
	c := &entry{File: e.File, Report: r, own: own, path: e.Path, in: e.Value}
	return c.convert()
}

// written returns the entries as the host writes them.
func (f *File) written(r Report) []Entry {
	all, special := f.specialEntries(r)
	if special {
		return all
	}
	for _, keys := range f.lists() {
		all = append(all, f.listed(keys, r)...)
	}
	return all
}

// unique gives the entries of several lists names of their own. In Claude Code's file the entry of a
// project hides that of the user.
func (f *File) unique(all []Entry) []Entry {
	taken := map[string]string{} // name → list
	var out []Entry
	for _, e := range all {
		here := strings.Join(e.List[:min(1, len(e.List))], ".")
		list, twice := taken[e.Key]
		if twice && f.Host.Name == "claude-code" {
			continue
		}
		if apart := f.Host == Other && list != here; !apart { // which the decoder names
			for i, key := 2, e.Key; twice; i++ {
				e.Key = fmt.Sprintf("%s %d", key, i)
				_, twice = taken[e.Key]
			}
		}
		taken[e.Key] = here
		e.Path = syntax.Below(f.listPath(e), e.Key)
		out = append(out, e)
	}
	return out
}

// listed returns the entries of an object or a list.
func (f *File) listed(keys []string, r Report) []Entry {
	n, at := f.root, ""
	for _, key := range keys {
		n, at = n.Get(key), syntax.Below(at, key)
	}
	var all []Entry
	for _, m := range n.Members {
		if first, _ := n.Member(m.Key); first.At != m.At || keys == nil && m.Key == "$schema" {
			continue // reported as a duplicate key
		}
		all = append(all, Entry{Member: m, List: keys, Path: syntax.Below(at, m.Key), File: f})
	}
	for i, item := range n.Items {
		path := syntax.Item(at, i)
		if item.Kind == syntax.Text && strings.Contains(item.Scalar, "://") { // an address
			item = object(item.At, syntax.Member{Key: "url", Value: text(item, item.Scalar)})
		}
		if len(keys) > 0 && keys[len(keys)-1] == "sse_servers" { // of OpenHands
			item = object(item.At, append(slices.Clone(item.Members), syntax.Member{Key: "type", Value: text(item, "sse")})...)
		}
		if item.Kind == syntax.Text { // a file that has them
			all = append(all, f.include(item.Scalar, path, item.At, r)...)
			continue
		}
		all = append(all, Entry{Member: syntax.Member{Key: nameOf(item, i), At: item.At, Value: item}, List: append(slices.Clone(keys), strconv.Itoa(i)), Path: path, File: f})
	}
	return all
}

// listPath returns the path of the list that holds an entry, for messages.
func (f *File) listPath(e Entry) string { return syntax.Below("", f.listName(e)) }

// listName returns the keys that lead to the list of an entry, as one. All lists of one file have the
// name of the first.
func (f *File) listName(e Entry) string {
	keys := e.List[:min(1, len(e.List))]
	if lists := f.lists(); len(lists) > 0 && !(f.Host == Other && len(lists[0]) == 1) {
		keys = lists[0]
	}
	if len(keys) == 0 || f.Host.Name == "claude-code" {
		return "mcpServers"
	}
	return strings.Join(keys, ".")
}

// nameOf returns a name for an entry of a list.
func nameOf(n *syntax.Node, i int) string {
	for _, key := range []string{"name", "id", "title", "displayName", "uses"} {
		if name := scalar(n.Get(key)); name != "" {
			return name
		}
	}
	if _, host, ok := strings.Cut(scalar(n.Get("url")), "://"); ok {
		return strings.TrimPrefix(strings.FieldsFunc(host+"/", func(r rune) bool { return r == '/' || r == ':' || r == '?' })[0], "www.")
	}
	return "server-" + strconv.Itoa(i+1)
}

// include returns the entries of another file, which a manifest names.
func (f *File) include(name, at string, pos syntax.Pos, r Report) []Entry {
	name = strings.NewReplacer("${CLAUDE_PLUGIN_ROOT}", f.Dir, "${extensionPath}", f.Dir).Replace(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.Dir, filepath.FromSlash(name))
	}
	data, err := regular.Read(context.Background(), name, syntax.MaxSize)
	if err != nil {
		r.Leave(pos, at, path.Base(filepath.ToSlash(name)), "there is no file "+name)
		return nil
	}
	root, err := (&syntax.Source{Name: name, Data: data}).Parse()
	if err != nil {
		r.Leave(pos, at, path.Base(filepath.ToSlash(name)), "it cannot be read: "+name)
		return nil
	}
	inner := &File{Host: f.Host, Dir: f.Dir, Project: f.Project, root: root}
	var all []Entry
	for _, keys := range inner.lists() {
		for _, e := range inner.listed(keys, r) {
			e.At = pos // of this file
			all = append(all, e)
		}
	}
	return all
}

// isUnreachable reports whether a host's entry is for a server that only the host can reach,
// like its own extension, or enables one that is configured elsewhere.
func (f *File) isUnreachable(n *syntax.Node) bool {
	if kind := scalar(n.Get("type")); f.Host.Name == "goose" && slices.Contains([]string{"builtin", "platform", "frontend", "inline_python"}, kind) {
		return true
	}
	reached := slices.ContainsFunc(append(reaching, "transport", "endpoint", "serverURL"), n.Has)
	return !reached && (n.Has("source") || n.Has("settings") || n.Has("enabled"))
}

// switchedOff returns a function that says why another setting of the host switches a server off, or "".
func (f *File) switchedOff() func(name string) string {
	roots := []*syntax.Node{f.root}
	if f.Host.Name == "claude-code" {
		dir, _ := os.Getwd()
		roots = append(roots, below(f.root, []string{"projects", dir}))
		for _, name := range []string{"settings.json", "settings.local.json"} {
			path := filepath.Join(f.Dir, ".claude", name)
			if data, err := regular.Read(context.Background(), path, syntax.MaxSize); err == nil && f.Project {
				settings, _ := (&syntax.Source{Name: path, Data: data}).Parse()
				roots = append(roots, settings)
			}
		}
	}
	find := func(keys []string) (list *syntax.Node, key string) {
		for _, key := range keys {
			for _, root := range roots {
				if n := below(root, strings.Split(key, ".")); n != nil && n.Kind == syntax.List {
					return n, key
				}
			}
		}
		return nil, ""
	}
	has := func(list *syntax.Node, name string) bool {
		return slices.ContainsFunc(list.Items, func(n *syntax.Node) bool { return n.Scalar == name })
	}
	return func(name string) string {
		for _, key := range f.Host.Off {
			if list, _ := find([]string{key}); list != nil && has(list, name) {
				return "its " + strings.TrimSuffix(key, ".excluded") + " says so"
			}
		}
		if list, key := find(f.Host.On); list != nil && !has(list, name) {
			return "its " + strings.TrimSuffix(key, ".allowed") + " says so"
		}
		if f.Host.Name == "opencode" {
			for _, m := range f.root.MembersOf("tools") {
				front, glob := strings.CutSuffix(m.Key, "*")
				if glob && m.Value.Scalar == "false" && (front == name || front == name+"_" || front == "") {
					return "its tools says so"
				}
			}
		}
		return ""
	}
}

// ownLists are the keys of a config of dynmcp whose entries are as hosts write them.
var ownLists = []string{"mcpServers", "servers"}

// Replace replaces the servers in the document by entries that were converted, under mcpServers or,
// for dynmcp's own lists, under their keys. It returns the host's other keys, which it leaves out, and
// the position of the first. known reports whether a key of the document is dynmcp's.
func (f *File) Replace(entries []Entry, known func(syntax.Member) bool) (left []string, at syntax.Pos) {
	lists := map[string]*syntax.Node{}
	list := func(name string, at syntax.Pos) *syntax.Node {
		if lists[name] == nil {
			lists[name] = &syntax.Node{Kind: syntax.Object, At: at}
		}
		return lists[name]
	}
	for _, keys := range f.lists() {
		if f.Host == Other && len(keys) == 1 && slices.Contains(ownLists, keys[0]) {
			list(keys[0], below(f.root, keys).At)
		}
	}
	for _, e := range entries {
		n := list(f.listName(e), e.At)
		n.Members = append(n.Members, e.Member)
	}
	own := f.own && f.root.Has("mcp")
	bare := len(f.lists()) == 1 && f.lists()[0] == nil
	var members []syntax.Member
	for _, m := range f.root.Members {
		holds := slices.ContainsFunc(f.lists(), func(keys []string) bool { return bare || keys[0] == m.Key }) || m.Key == "mcpServers" && !f.own
		switch {
		case f.Host == Other && slices.Contains(ownLists, m.Key) && lists[m.Key] != nil:
			m.Value = lists[m.Key]
			members = append(members, m)
		case holds:
		case f.Host.Exact && slices.Contains(ownLists, m.Key):
			if len(left) == 0 {
				at = m.At
			}
			left = append(left, m.Key)
		case own || f.own && len(lists) == 0 || known(m) && !f.Host.Settings && !(m.Key == "mcp" && !f.own):
			members = append(members, m)
		default:
			if len(left) == 0 {
				at = m.At
			}
			left = append(left, m.Key)
		}
	}
	if f.Host != Other && len(lists) == 0 {
		list("mcpServers", f.root.At)
	}
	for name, n := range lists {
		if f.Host != Other || !slices.Contains(ownLists, name) || bare {
			m := syntax.Member{Key: "mcpServers", At: n.At, Value: n}
			if name != m.Key {
				m.Written = name
			}
			members = append(members, m)
		}
	}
	f.root.Members = members
	return left, at
}

// IsOwn reports whether the file is a config of dynmcp.
func (f *File) IsOwn() bool { return f.own }

// Folder returns the folder in which the host starts the program of an entry: that of the project, if
// the file is one of a project or a word of the command is a path in its folder, and "" otherwise.
func (e Entry) Folder() string {
	if e.Project {
		return e.Dir
	}
	words := append([]*syntax.Node{e.Value.Get("command")}, e.Value.ItemsOf("args")...)
	for _, word := range words {
		path := filepath.FromSlash(scalar(word))
		if strings.ContainsAny(path, "./") && !filepath.IsAbs(path) {
			if _, err := os.Stat(filepath.Join(e.Dir, path)); err == nil && path != "." {
				return e.Dir
			}
		}
	}
	return ""
}
