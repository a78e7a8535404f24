package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Files of hosts are read as their hosts read them, alike with -c and on import.
func TestFilesOfHosts(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.FromSlash("testdata/hosts/files.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("HOME", filepath.Join(dir, "home"))
	first := map[string]string{} // folder → the file that is read
	var folders []string
	for _, f := range archive.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, f.Data, 0o666)); err != nil {
			t.Fatal(err)
		}
		if folder, _, _ := strings.Cut(f.Name, "/"); first[folder] == "" {
			first[folder] = path
			folders = append(folders, folder)
		}
	}
	var got strings.Builder
	for _, folder := range folders {
		path := first[folder]
		fmt.Fprintf(&got, "== %s\n", filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))))
		cfg, err := ReadFiles(t.Context(), []string{path}, LoadOptions{Dir: t.TempDir(), Environ: []string{"HOME=/home/me"}, Lenient: true, Schemes: schemes}).Load()
		if err != nil {
			fmt.Fprintf(&got, "%v\n", err)
			continue
		}
		var run []string
		for _, s := range cfg.Servers {
			run = append(run, s.Name)
			got.WriteString(shown(s))
		}
		var imported []string
		data, _ := os.ReadFile(path)
		servers, left, err := HostServers(nil, path, data, nil)
		if err != nil {
			fmt.Fprintf(&got, "import: %v\n", err)
		}
		for i, s := range servers {
			imported = append(imported, s.Entry.Key)
			if i < len(cfg.Servers) && (s.Err != nil) != (cfg.Servers[i].Off != nil && cfg.Servers[i].Off.Failed != nil) && !strings.Contains(strings.Join(s.Notes, " "), "there is no file") {
				t.Errorf("%s: %s: on import %v, with -c %+v", path, s.Entry.Key, s.Err, cfg.Servers[i].Off)
			}
			for _, note := range s.Notes {
				fmt.Fprintf(&got, "  import %s: %s\n", s.Entry.Key, note)
			}
		}
		for _, note := range left {
			fmt.Fprintf(&got, "  import: %s\n", note)
		}
		if len(run) != len(imported) {
			t.Errorf("%s: -c has %q, import %q", path, run, imported)
		}
	}
	text := strings.ReplaceAll(got.String(), dir, "$DIR")
	golden := filepath.FromSlash("testdata/hosts/read.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// shown returns a server as an entry on one line, and why it is off.
func shown(s Server) string {
	off := ""
	if s.Off != nil {
		off = fmt.Sprintf("  off: missing %q, %q\n", s.Off.Missing, s.Off.Failed)
	}
	name := s.Name
	data, err := SetServer("a.json", []byte("{}"), s.WithoutDefaults())
	if err != nil {
		return name + ": " + err.Error() + "\n"
	}
	root, err := (&syntax.Source{Name: "a.json", Data: data}).Parse()
	if err != nil {
		return name + ": " + err.Error() + "\n"
	}
	raw := json.RawMessage(root.Get("mcp").Get(name).Compact())
	return fmt.Sprintf("%s: %s\n%s", name, raw, off)
}

// A value of another kind anywhere in a host's file is an error at most.
func TestOddFilesOfHosts(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.FromSlash("testdata/hosts/files.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	tried, dir := 0, t.TempDir()
	for _, f := range archive.Files {
		root, err := (&syntax.Source{Name: f.Name, Data: f.Data}).Parse()
		if err != nil || syntax.IsTOML(f.Name) {
			continue
		}
		var all []*syntax.Node
		var collect func(n *syntax.Node)
		collect = func(n *syntax.Node) {
			all = append(all, n)
			for _, item := range n.Items {
				collect(item)
			}
			for _, m := range n.Members {
				collect(m.Value)
			}
		}
		collect(root)
		at := 0
		for _, n := range all {
			if at++; at%3 != 0 { // a third of them is a second of time
				continue
			}
			was := *n
			for _, odd := range []syntax.Node{{}, {Kind: syntax.Number, Scalar: "1"}, {Kind: syntax.Text}, {Kind: syntax.List, Items: []*syntax.Node{{Kind: syntax.Text, Scalar: "x"}}}, {Kind: syntax.Object}} {
				*n = odd
				data := root.Compact()
				_, _ = parse(f.Name, data, LoadOptions{Dir: dir, Environ: environ, Lenient: true})
				_, _, _ = HostServers(nil, f.Name, data, nil)
				tried++
			}
			*n = was
		}
	}
	if tried < 1000 {
		t.Errorf("only %d files tried", tried)
	}
}
