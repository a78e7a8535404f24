package schema

import (
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/hostfile"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// ownKeys are the keys of an entry, those of all modules included. If strict, one that is misspelt is an error.
// known are the sections of this program's modules.
func ownKeys(strict bool, known []Section) hostfile.OwnKeys {
	all := withSections(serverFields, known, true)
	own := hostfile.OwnKeys{
		All: keysOf(all), Stdio: keysOf(inGroups(all, stdioGroups...)), HTTP: keysOf(inGroups(all, httpGroups...)),
		Reach: []string{"openapi"}, Strict: strict,
	}
	for _, f := range all[len(serverFields):] {
		if f.required {
			own.Reach = append(own.Reach, f.key)
		}
	}
	for _, key := range KeysWithout(known, true) { // refused later
		own.All, own.Stdio, own.HTTP = append(own.All, key), append(own.Stdio, key), append(own.HTTP, key)
	}
	return own
}

// A hostReport takes what the conversion of a host's file has to say.
type hostReport struct {
	*report
	lenient bool
}

func (r hostReport) Warn(at syntax.Pos, path, what, hint string) { r.warn(at, path, what, hint) }
func (r hostReport) Fail(at syntax.Pos, path, what, hint string) { r.fail(at, path, what, hint) }
func (r hostReport) Note(syntax.Pos, string, string)             {}
func (r hostReport) Secret(value string)                         { r.secret(value) }

func (r hostReport) Lack(at syntax.Pos, path, what, hint string) {
	if r.lenient {
		r.fail(at, path, what, hint)
	} else {
		r.warn(at, path, what, hint)
	}
}

func (r hostReport) Leave(at syntax.Pos, path, _, why string) {
	r.warn(at, path, "this server is left out: "+why, "")
}

// convertHost replaces the servers of a host in a document by entries of dynmcp, in place.
func convertHost(r *reading, name string, root *syntax.Node, known []field) {
	if root.Kind != syntax.Object {
		return
	}
	if r.path != "" {
		name = r.path
	}
	f := hostfile.Open(name, root, nil)
	entries := f.Entries(ownKeys(!isLenient(r), r.known), hostReport{&r.report, isLenient(r)})
	if dir, _ := os.Getwd(); f.Project && dir != f.Dir {
		for i := range entries {
			setFolder(entries[i].Value, f.Dir)
		}
	}
	left, at := f.Replace(entries, func(m syntax.Member) bool {
		return (hasKey(known, m.Key) || documentModules[m.Key] != "") && !(m.Key == "env" && m.Value.Kind != syntax.Text)
	})
	if len(left) > 0 {
		r.warn(at, "", "the host's own keys are not read: "+strings.Join(left, ", "), "")
	}
}

// setFolder sets the working directory of a program to that of its project, where its host starts it.
func setFolder(n *syntax.Node, dir string) {
	if transportOf(n) == Stdio && !n.Has("cwd") {
		n.Members = append(n.Members, syntax.Member{Key: "cwd", At: n.At, Value: &syntax.Node{Kind: syntax.Text, At: n.At, Scalar: dir}})
	}
}

// A HostServer is a server of a host's file, as written: references to variables stay.
type HostServer struct {
	Server
	Entry hostfile.Entry
	Notes []string // on what is not taken over
	Err   error    // what is wrong with it
}

// HostServers reads the servers of a host's file. h is nil if the place and the content of the file
// say whose it is, sections are the keys of the program's modules. left are notes on those that are left out.
func HostServers(h *hostfile.Host, name string, data []byte, sections []Section) (servers []HostServer, left []string, err error) {
	f, err := openHost(h, name, data)
	if err != nil {
		return nil, nil, err
	}
	var notes notes
	return hostServers(f.Entries(ownKeys(false, sections), &notes), &notes, sections), notes.left, nil
}

// HostServersAt reads the servers to which keys lead, alone.
func HostServersAt(h *hostfile.Host, name string, data []byte, keys []string, sections []Section) ([]HostServer, error) {
	f, err := openHost(h, name, data)
	if err != nil {
		return nil, err
	}
	var notes notes
	return hostServers(f.EntriesAt(keys, ownKeys(false, sections), &notes), &notes, sections), nil
}

func openHost(h *hostfile.Host, name string, data []byte) (*hostfile.File, error) {
	root, err := (&syntax.Source{Name: name, Data: data}).Parse()
	if err != nil {
		return nil, err
	}
	if root.Kind != syntax.Object {
		root = &syntax.Node{Kind: syntax.Object, At: root.At}
	}
	return hostfile.Open(name, root, h), nil
}

func hostServers(entries []hostfile.Entry, all *notes, sections []Section) (servers []HostServer) {
	for _, e := range entries {
		servers = append(servers, hostServer(e, all.below(e.Path), sections))
	}
	return servers
}

// HostEntry reads one entry as hosts write it. It calls note for each key that is ignored or means
// something else than in the host. With an error it also returns the part that could be read.
func HostEntry(key string, data []byte, sections []Section, note func(string)) (Server, error) {
	n, err := (&syntax.Source{Name: "entry.json", Data: data}).Parse()
	if err != nil {
		return Server{}, err
	}
	var notes notes
	e := hostfile.Entry{Member: syntax.Member{Key: key, Value: n}, File: hostfile.Open("entry.json", &syntax.Node{Kind: syntax.Object}, hostfile.Other)}
	e.Value = e.Convert(ownKeys(false, sections), &notes)
	s := hostServer(e, notes.all, sections)
	for _, text := range s.Notes {
		note(text)
	}
	return s.Server, s.Err
}

// notes collects what the conversion of a host's entries has to say.
type notes struct {
	all  []note
	left []string
}

type note struct {
	path, text string
	fails      bool
}

func (n *notes) add(path, text string, fails bool) { n.all = append(n.all, note{path, text, fails}) }

func (n *notes) Warn(_ syntax.Pos, path, what, hint string) {
	if !strings.HasPrefix(what, "this is read as") {
		n.add(path, what+strings.TrimSuffix(": "+hint, ": "), false)
	}
}
func (n *notes) Lack(_ syntax.Pos, path, what, _ string) {
	n.add(path, "this is not read: "+what, false)
}
func (n *notes) Note(_ syntax.Pos, path, what string)    { n.add(path, what, false) }
func (n *notes) Fail(_ syntax.Pos, path, what, _ string) { n.add(path, what, true) }
func (*notes) Secret(string)                             {}
func (n *notes) Leave(_ syntax.Pos, _, name, why string) {
	n.left = append(n.left, name+" is left out: "+why)
}

// below returns the notes on the entry at a path.
func (n *notes) below(path string) (all []note) {
	for _, one := range n.all {
		if rest, ok := strings.CutPrefix(one.path, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			one.path = strings.TrimPrefix(rest, ".")
			all = append(all, one)
		}
	}
	return all
}

var notRead = lazyregexp.New(`^this( key of the host)? is not read`)

// hostServer decodes an entry that was converted.
func hostServer(e hostfile.Entry, all []note, sections []Section) HostServer {
	r := &reading{known: sections, report: report{src: &syntax.Source{}}, template: Single("", nil).Defaults}
	markReferences(e.Value)
	out := HostServer{Server: r.server("", e.Member).WithoutDefaults(), Entry: e}
	s := &out.Server
	if s.TransportOpen || s.OpenAPI != "" {
		s.Transport = ""
	}
	if s.Auth != nil {
		var usual Auth
		setDefaults(reflect.ValueOf(&usual).Elem())
		clearEqual(reflect.ValueOf(s.Auth).Elem(), reflect.ValueOf(usual))
	}
	for _, n := range all {
		if n.fails {
			r.fail(e.At, n.path, n.text, "")
			continue
		}
		text := notRead().ReplaceAllString(n.text, "this is not taken over")
		out.Notes = append(out.Notes, strings.Replace(text, "this ", "its "+n.path+" ", 1))
	}
	slices.Sort(out.Notes)
	out.Notes = slices.Compact(out.Notes)
	out.Err = r.err()
	return out
}
