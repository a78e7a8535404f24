package box_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
)

func TestBeyond(t *testing.T) {
	policy := sandbox.Policy{Read: []string{"/no/usr", "/no/work"}, Write: []string{"/no/cache"}}
	all := []box.Access{
		{"/no/usr/bin/node", box.ToRead},
		{"/no/usr2/bin", box.ToRead},
		{"/no/cache/a", box.ToRead},
		{"/no/cache/b", box.ToChange},
		{"/no/cache", box.ToMake}, // in /no
		{"/no/work/c", box.ToMake},
		{"/no/work/d", box.ToChange},
	}
	want := []box.Access{all[1], all[4], all[5], all[6]}
	if diff := cmp.Diff(want, box.Beyond(policy, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPaths(t *testing.T) {
	const home = "/home/u"
	in := func(need box.Need, paths ...string) (all []box.Access) {
		for _, path := range paths {
			all = append(all, box.Access{Path: path, Need: need})
		}
		return all
	}
	for name, c := range map[string]struct {
		beyond      []box.Access
		read, write []string
	}{
		"few files":                    {in(box.ToRead, "/a/1", "/a/2", "/a/3"), []string{"/a/1", "/a/2", "/a/3"}, nil},
		"many files":                   {in(box.ToRead, "/a/1", "/a/2", "/a/3", "/a/4"), []string{"/a"}, nil},
		"many files at home":           {in(box.ToRead, home+"/1", home+"/2", home+"/3", home+"/4"), []string{home + "/1", home + "/2", home + "/3", home + "/4"}, nil},
		"home itself, and what has it": {in(box.ToRead, home, "/home", "/"), nil, nil},
		"a file that is there":         {in(box.ToChange, home+"/notes/1"), nil, []string{home + "/notes/1"}},
		"a new file":                   {in(box.ToMake, home+"/notes/1"), nil, []string{home + "/notes"}},
		"a new file at home":           {in(box.ToMake, home+"/.state"), nil, []string{home + "/.state"}},
		"what may be changed is read":  {append(in(box.ToMake, "/a/1"), in(box.ToRead, "/a/2", "/a/b/3")...), nil, []string{"/a"}},
		"one below another":            {in(box.ToRead, "/a/b/1", "/a/b/2", "/a/b/3", "/a/b/4", "/a/b/c/5"), []string{"/a/b"}, nil},
		"a name that begins the same":  {in(box.ToChange, "/a", "/ab"), nil, []string{"/a", "/ab"}},
	} {
		t.Run(name, func(t *testing.T) {
			read, write := box.Paths(c.beyond, home)
			if diff := cmp.Diff(c.read, read, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("to be read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.write, write, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("to be changed (-want +got):\n%s", diff)
			}
		})
	}
}
