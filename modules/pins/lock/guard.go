package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/modules/pins/lookalike"
)

// A Book is a lock for comparison with the listings of servers. It is immutable.
type Book struct {
	lock   Lock
	broken error
	alike  func() map[string][]string // the approved tools, SERVER/TOOL, by the skeleton of their names
}

// NewBook returns the book of a lock. broken is the error of reading it: then a guard that
// blocks approves nothing, and one that does not block reports nothing.
func NewBook(lock Lock, broken error) *Book {
	return &Book{lock, broken, sync.OnceValue(func() map[string][]string {
		all := map[string][]string{}
		for _, server := range slices.Sorted(maps.Keys(lock)) {
			for _, tool := range slices.Sorted(maps.Keys(lock[server].Tools)) {
				skeleton := lookalike.Skeleton(tool)
				all[skeleton] = append(all[skeleton], server+"/"+tool)
			}
		}
		return all
	})}
}

// A Guard applies a lock to one server. It is immutable.
type Guard struct {
	*Book
	blocks bool
	server string
}

// Guard returns the guard of a server. With blocks, unapproved tools are hidden from hosts; otherwise
// they are reported.
func (b *Book) Guard(server string, blocks bool) *Guard { return &Guard{b, blocks, server} }

// Blocks reports whether unapproved tools are hidden from hosts.
func (g *Guard) Blocks() bool { return g.blocks }

// Pinned reports whether the lock contains the server. Otherwise a guard that does not block reports
// nothing: the first listing is pinned.
func (g *Guard) Pinned() bool { return g.broken == nil && g.lock[g.server] != nil }

// Approves reports whether a tool may be called without a warning.
func (g *Guard) Approves(t definition.Tool) bool {
	if g.Pinned() {
		return g.lock[g.server].Tools[t.Name] == t.Digest
	}
	return !g.blocks
}

// A Kind is the relation of a tool to the approved ones.
type Kind int

// The kinds. A tool gets the first that matches, after Approved.
const (
	Approved  Kind = iota
	Unread         // the lock is broken
	Unpinned       // nothing of the server is approved
	Changed        // another definition was approved under the name
	LooksLike      // the name looks like that of an approved tool
	Renamed        // the definition was approved under another name, which is no longer listed
	Moved          // the definition was approved for another server
	New
	Gone // it was approved, and is no longer listed
)

// A Verdict describes the relation of a tool to the approved ones.
type Verdict struct {
	Kind Kind
	Of   string // the approved tool that it looks like, or was: SERVER/TOOL
	Now  string // the digest of the listed tool
	err  error
}

// Compare returns a verdict for each tool that a server lists.
func (g *Guard) Compare(tools []definition.Tool) []Verdict {
	verdicts := make([]Verdict, len(tools))
	var gone []string
	looked, renames := false, maxRenames
	for i, t := range tools {
		if g.Approves(t) {
			continue
		}
		if !looked {
			gone, looked = g.Gone(tools), true
		}
		verdicts[i] = g.judge(t, gone, &renames)
		verdicts[i].Now = t.Digest
	}
	return verdicts
}

// Gone returns the names of approved tools that are no longer listed, sorted.
func (g *Guard) Gone(tools []definition.Tool) (names []string) {
	if !g.Pinned() {
		return nil
	}
	listed := map[string]bool{}
	for _, t := range tools {
		listed[t.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(g.lock[g.server].Tools)) {
		if !listed[name] {
			names = append(names, name)
		}
	}
	return names
}

// judge judges an unapproved tool; gone are the approved tools that are no longer listed.
func (g *Guard) judge(t definition.Tool, gone []string, renames *int) Verdict {
	switch {
	case g.broken != nil:
		return Verdict{Kind: Unread, err: g.broken}
	case g.Pinned() && g.lock[g.server].Tools[t.Name] != "":
		return Verdict{Kind: Changed}
	}
	for _, of := range g.alike()[lookalike.Skeleton(t.Name)] {
		if _, name, _ := strings.Cut(of, "/"); name != t.Name {
			return Verdict{Kind: LooksLike, Of: of}
		}
	}
	for _, name := range gone {
		if *renames--; *renames >= 0 && t.DigestAs(name) == g.lock[g.server].Tools[name] {
			return Verdict{Kind: Renamed, Of: g.server + "/" + name}
		}
	}
	for _, of := range g.alike()[lookalike.Skeleton(t.Name)] {
		if server, name, _ := strings.Cut(of, "/"); g.lock[server].Tools[name] == t.Digest {
			return Verdict{Kind: Moved, Of: of}
		}
	}
	if !g.Pinned() {
		return Verdict{Kind: Unpinned}
	}
	return Verdict{Kind: New}
}

// maxRenames limits, per listing, the checks whether a new tool is a renamed one: each costs a
// digest.
const maxRenames = 1000

// String describes the problem, as the rest of a sentence that begins with the tool.
func (v Verdict) String() string {
	switch v.Kind {
	case Approved:
		return "is as it was approved"
	case Unread:
		return fmt.Sprintf("is not known to be approved: %v", v.err)
	case Unpinned:
		return "is not approved: no tool of its server is"
	case Changed:
		return "has another definition than the one that was approved"
	case LooksLike:
		return fmt.Sprintf("is not approved, and its name looks like that of %q", v.Of)
	case Renamed:
		return fmt.Sprintf("is not approved under this name: it is what %q was", v.Of)
	case Moved:
		return fmt.Sprintf("is not approved for this server: it is what %q is", v.Of)
	case Gone:
		return "was approved, and is not listed any more"
	}
	return "is new, and not approved"
}
