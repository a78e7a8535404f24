package names

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog/entry"
)

// listed returns entries of these names.
func listed(key string, names ...string) (all []entry.Named) {
	for _, name := range names {
		all = append(all, entry.Named{ID: name, Raw: fmt.Appendf(nil, `{"x":1.0,%q:%q}`, key, name)})
	}
	return all
}

func list(server string, uris, templates, prompts []string) List {
	return List{Server: server, Resources: listed("uri", uris...), Templates: listed("uriTemplate", templates...), Prompts: listed("name", prompts...)}
}

func names(list []entry.Named) (all []string) {
	for _, n := range list {
		all = append(all, n.ID)
		if !strings.Contains(string(n.Raw), fmt.Sprintf("%q", n.ID)) {
			all = append(all, "but "+string(n.Raw))
		}
	}
	return all
}

func TestResource(t *testing.T) {
	t.Parallel()
	table := New([]List{
		list("one", []string{"shared://x", "file:///a", "x://é", "~odd", "dynmcp+two+q://1", "ui://app/main", "only://host/1", "both://1"},
			[]string{"file:///{path}", "{anything}", "fixed://exact", "note://ü/{id}", "db://{t}/rows/{r}", "same://{a}"}, nil),
		list("two", []string{"shared://x", "file:///b/c", "ui://app/main", "both://2"},
			[]string{"file:///deep/{path}", "db://{t}/cols/{r}", "q://{x}", "same://{b}"}, nil),
		list("three", nil, nil, nil),
	})
	for uri, want := range map[string]string{
		"file:///a":               "one file:///a",
		"shared://x":              "one,two",
		"dynmcp+two+shared://x":   "two shared://x",
		"dynmcp+three+any://x":    "three any://x", // it names the server
		"dynmcp+four+any://x":     "",
		"file:///b/c":             "two file:///b/c", // a listed URI wins over a template
		"file:///other":           "one file:///other",
		"file:///deep/d":          "two file:///deep/d", // the more specific template
		"file:///deep/{path}":     "two file:///deep/{path}",
		"{anything}":              "one {anything}",
		"fixed://exact":           "one fixed://exact",
		"fixed://no":              "",
		"db://t/rows/1":           "one db://t/rows/1", // the whole template counts
		"db://t/cols/1":           "two db://t/cols/1",
		"same://{c}":              "one,two",
		"same://5":                "one,two",
		"note://%C3%BC/1":         "one note://%C3%BC/1", // as a host expands the template
		"NOTE://%c3%bc/1":         "one NOTE://%c3%bc/1",
		"note://ü/1":              "one note://ü/1",
		"x://%C3%A9":              "one x://%C3%A9",
		"%7Eodd":                  "one %7Eodd",
		"dynmcp+two+q://1":        "two q://1", // whoever lists it
		"ui://app/main":           "one,two",
		"ui://two+app/main":       "two ui://app/main",
		"only://host/2":           "one only://host/2", // nobody else lists anything there
		"only://other/2":          "",
		"nobody://x":              "",
		"both://3":                "",
		"":                        "",
		"dynmcp+one+":             "one ",
		"dynmcp+one+dynmcp+two+q": "one dynmcp+two+q",
	} {
		owner, several := table.Resource(uri)
		got := strings.Join(several, ",")
		if owner.Server != "" {
			got += owner.Server + " " + owner.Name
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
	if got, want := names(table.Lists[0].Resources), []string{"dynmcp+one+shared://x", "file:///a", "x://é", "~odd", "dynmcp+one+dynmcp+two+q://1", "ui://one+app/main", "only://host/1", "both://1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got, want := names(table.Lists[1].Templates), []string{"file:///deep/{path}", "db://{t}/cols/{r}", "q://{x}", "dynmcp+two+same://{b}"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, tt := range []struct{ server, uri, elsewhere, want string }{
		{"one", "file:///a", "", "file:///a"},
		{"two", "file:///a", "", "dynmcp+two+file:///a"},
		{"two", "shared://x", "", "dynmcp+two+shared://x"},
		{"one", "shared://x", "", "dynmcp+one+shared://x"},
		{"one", "new://1", "", "new://1"},
		{"one", "new://1", "one", "new://1"},
		{"one", "new://1", "two", "dynmcp+one+new://1"},
		{"one", "https://example.com/1", "two", "https://example.com/1"}, // hosts fetch it themselves
		{"one", "dynmcp+two+q://1", "", "dynmcp+one+dynmcp+two+q://1"},
		{"two", "skill://one+x", "", "skill://two+one+x"},
	} {
		if got := table.Shown(tt.server, tt.uri, tt.elsewhere); got != tt.want {
			t.Errorf("%q: got %q", tt, got)
		}
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	table := New([]List{
		list("one", nil, nil, []string{"doc", "only", "two.doc", "one.own"}),
		list("two", nil, nil, []string{"doc", "three.x"}),
		list("three", nil, nil, []string{"y"}),
	})
	for name, want := range map[string]Owner{
		"one.doc": {"one", "doc"}, "two.doc": {"two", "doc"}, "only": {"one", "only"}, "one.only": {"one", "only"},
		"one.two.doc": {"one", "two.doc"}, "one.own": {"one", "one.own"}, "three.x": {"two", "three.x"}, "three.y": {"three", "y"},
		"doc": {}, "three.z": {}, "two.only": {},
	} {
		if got, _ := table.Prompt(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if _, several := table.Prompt("doc"); !slices.Equal(several, []string{"one", "two"}) {
		t.Errorf("got %q", several)
	}
	if got := names(table.Lists[0].Prompts); !slices.Equal(got, []string{"one.doc", "only", "one.two.doc", "one.own"}) {
		t.Errorf("got %q", got)
	}
}

// One wrapped server has its own names, whatever they read like.
func TestSingle(t *testing.T) {
	t.Parallel()
	in := list("one", []string{"dynmcp+one+x://1"}, []string{"ui://one+{x}"}, []string{"one.p"})
	table := Single(in)
	if !reflect.DeepEqual(table.Lists, []List{in}) {
		t.Errorf("got %v", table.Lists)
	}
	if got := table.Shown("one", "dynmcp+one+x://1", ""); got != "dynmcp+one+x://1" {
		t.Error(got)
	}
}

// Whatever three servers list: each name in a list belongs to the server that lists it, is the only
// one of its kind, and names that several have belong to nobody.
func TestListedNamesAreOwned(t *testing.T) {
	t.Parallel()
	servers := []string{"a", "b", "c"}
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(from ...string) string { return from[random.IntN(len(from))] }
		uri := func() string {
			return pick("", "", "", "dynmcp+a+", "dynmcp+b+", "dynmcp+") + pick("x://", "ui://", "ui://a+", "u:", "X://") + pick("h/", "é/", "%C3%A9/", "") + pick("1", "2", "%31")
		}
		var lists []List
		has, prompts := map[string]map[string]bool{}, map[string]map[string]bool{}
		for _, server := range servers {
			var uris, templates, names []string
			has[server], prompts[server] = map[string]bool{}, map[string]bool{}
			for range random.IntN(4) {
				uris = append(uris, uri())
				templates = append(templates, uri()+"{x}"+pick("", "/", "/{y}"))
				names = append(names, pick("", "a.", "b.", "b.c.")+pick("p", "q"))
			}
			for _, u := range uris {
				has[server][u] = true
			}
			for _, n := range names {
				prompts[server][n] = true
			}
			lists = append(lists, list(server, uris, templates, names))
		}
		table := New(lists)
		seen := map[string]string{} // shown name to server
		for i, l := range table.Lists {
			for at, n := range l.Resources {
				if owner, _ := table.Resource(n.ID); owner != (Owner{l.Server, lists[i].Resources[at].ID}) {
					t.Fatalf("%d: %q of %s belongs to %q", seed, n.ID, l.Server, owner)
				}
			}
			for at, n := range l.Templates {
				own := lists[i].Templates[at].ID
				expand := strings.NewReplacer("{x}", "v", "{y}", "w").Replace
				owner, several := table.Resource(expand(n.ID))
				if n.ID != own && owner != (Owner{l.Server, expand(own)}) {
					t.Fatalf("%d: %q of %s belongs to %q", seed, expand(n.ID), l.Server, owner)
				}
				if owner.Server == "" && len(several) < 2 {
					t.Fatalf("%d: %q of %s belongs to nobody", seed, expand(n.ID), l.Server)
				}
			}
			for at, n := range l.Prompts {
				if owner, _ := table.Prompt(n.ID); owner != (Owner{l.Server, lists[i].Prompts[at].ID}) {
					t.Fatalf("%d: prompt %q of %s belongs to %q", seed, n.ID, l.Server, owner)
				}
			}
			for _, n := range slices.Concat(l.Resources, l.Prompts) {
				if other, ok := seen[n.ID]; ok && other != l.Server {
					t.Fatalf("%d: %s and %s have %q", seed, other, l.Server, n.ID)
				}
				seen[n.ID] = l.Server
			}
		}
		for range 20 {
			asked := uri()
			owner, _ := table.Resource(asked)
			for _, server := range servers {
				if _, scoped := table.Scoped(asked); has[server][asked] && !scoped && owner.Server != "" && owner.Server != server {
					t.Fatalf("%d: %q, which %s lists, belongs to %q", seed, asked, server, owner)
				}
			}
		}
	}
}

// A table is made at each change of a list.
func BenchmarkNew(b *testing.B) {
	var lists []List
	for s := range 20 {
		var uris, templates, prompts []string
		for i := range 500 {
			uris = append(uris, fmt.Sprintf("file:///home/user/s%d/file-%d.txt", s, i))
			prompts = append(prompts, fmt.Sprintf("prompt-%d-%d", s, i))
		}
		for i := range 20 {
			templates = append(templates, fmt.Sprintf("db://s%d/t%d/{id}", s, i))
		}
		lists = append(lists, list(fmt.Sprintf("s%d", s), uris, templates, prompts))
	}
	b.Run("20 servers of 500", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(lists)
		}
	})
	table := New(lists)
	b.Run("template", func(b *testing.B) {
		for b.Loop() {
			table.Resource("db://s3/t7/1")
		}
	})
}
