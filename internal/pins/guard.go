package pins

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/lookalike"
)

// A Book is a lock as it was read, to be compared with what servers list. It is immutable.
type Book struct {
	lock   Lock
	broken error
	alike  func() map[string][]string // the approved tools, SERVER/TOOL, by what their names look like
}

// NewBook returns the book of a lock. broken is why that could not be read: then nothing is
// approved for a guard that blocks, and nothing is said by one that does not.
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

// A Guard holds one server to what a lock says of it. It is immutable. Nil holds to nothing.
type Guard struct {
	*Book
	blocks bool
	server string
}

// Guard returns the guard of a server. blocks says that hosts may know of no tool but those
// that are approved; otherwise it is said which are not.
func (b *Book) Guard(server string, blocks bool) *Guard { return &Guard{b, blocks, server} }

// Blocks reports whether hosts may not know of tools that are not approved.
func (g *Guard) Blocks() bool { return g != nil && g.blocks }

// Pinned reports whether the lock knows the server. Before that a guard that does not block
// has nothing to say: the first listing is what is pinned.
func (g *Guard) Pinned() bool { return g != nil && g.broken == nil && g.lock[g.server] != nil }

// Broken returns why the lock cannot be read.
func (g *Guard) Broken() error {
	if g == nil {
		return nil
	}
	return g.broken
}

// Approves reports whether a tool may be called without a word.
func (g *Guard) Approves(t Tool) bool {
	switch {
	case g == nil:
		return true
	case g.Pinned():
		return g.lock[g.server].Tools[t.Name] == t.Digest
	}
	return !g.blocks
}

// A Kind is how a tool relates to what was approved.
type Kind int

// The kinds, of which a tool has the first that fits but for Approved.
const (
	Approved  Kind = iota
	Unread         // the lock is broken
	Unpinned       // nothing of the server is approved
	Changed        // another definition was approved under the name
	LooksLike      // the name looks like that of an approved tool
	Renamed        // the definition was approved under another name, which is not listed any more
	Moved          // the definition was approved for another server
	New
	Gone // it was approved, and is not listed
)

// A Verdict says how a tool relates to what was approved.
type Verdict struct {
	Kind Kind
	Of   string // the approved tool that it looks like, or was: SERVER/TOOL
	Now  string // the digest of what is listed
	err  error
}

// Judge returns a verdict for each tool that a server lists.
func (g *Guard) Judge(tools []Tool) []Verdict {
	verdicts := make([]Verdict, len(tools))
	var gone []string
	looked, renames := false, mostRenames
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

// Gone returns the names of approved tools that are not listed any more, sorted.
func (g *Guard) Gone(tools []Tool) (names []string) {
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

// judge judges a tool that is not approved, where these approved ones are gone.
func (g *Guard) judge(t Tool, gone []string, renames *int) Verdict {
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
		if *renames--; *renames >= 0 && t.renamed(name) == g.lock[g.server].Tools[name] {
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

// mostRenames bounds how often it is asked, of one listing, whether a new tool is one that
// is gone: each time costs a digest.
const mostRenames = 1000

// String says what is wrong, as the rest of a sentence that begins with the tool.
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
