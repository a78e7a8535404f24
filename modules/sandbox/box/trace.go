package box

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A Need is the kind of an access.
type Need int

const (
	ToRead   Need = iota // to read a file or a directory, or to run a program
	ToChange             // to write to an existing file, or to connect to a socket
	ToMake               // to make, rename or remove a file: its directory changes
)

// An Access is an access that a server tried.
type Access struct {
	Path string // absolute, without symbolic links
	Need Need
}

// maxNoted limits the number of accesses in a Trace.
const maxNoted = 20_000

// A Trace records the files that a server, with everything it starts, opens and the hosts that it
// connects to. It needs Linux 5.5. The zero value is ready; it is used for one start.
type Trace struct {
	// Learn disables all limits. Otherwise the sandbox is enforced, and refused accesses are
	// recorded as well.
	Learn bool
	// Socket is set when a network socket was refused, because the policy allows no network.
	Socket atomic.Bool

	mu        sync.Mutex
	files     map[string]Need
	hosts     map[string]bool // as host:port, requested from the proxy
	denied    map[string]bool // refused hosts, in the form for an entry
	addresses map[string]bool // as address:port, connected to without the proxy
	temp      string          // the server's own temporary directory
	proxy     string          // address:port
	err       error
	unreadErr error // of calls whose arguments could not be read
	wasRead   bool  // the arguments of some call were read
}

// Err returns why nothing could be recorded, nil if it could.
func (t *Trace) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wasRead {
		return t.err
	}
	return cmp.Or(t.err, t.unreadErr)
}

// unread records whether the arguments of a call could be read, and reports whether they could
// not. Those of the execve that starts the command cannot.
func (t *Trace) unread(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.wasRead = true
		return false
	}
	t.unreadErr = err
	return true
}

// Files returns the accesses to files, by path, except those in the server's temporary directory.
func (t *Trace) Files() []Access {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Access, 0, len(t.files))
	temp := sandbox.Resolved([]string{t.temp})
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		if t.temp == "" || !below(temp, path) {
			all = append(all, Access{path, t.files[path]})
		}
	}
	return all
}

// Hosts returns the hosts and ports that were requested from the proxy.
func (t *Trace) Hosts() []string { return t.sorted(&t.hosts) }

// Denied returns the hosts that the proxy refused, in the form for the network of an entry.
func (t *Trace) Denied() []string { return t.sorted(&t.denied) }

func (t *Trace) sorted(all *map[string]bool) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(*all))
}

// Addresses returns the addresses and ports that were connected to without the proxy.
func (t *Trace) Addresses() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.addresses)), func(address string) bool { return address == t.proxy })
}

// exclude removes the resources of the sandbox itself from the results.
func (t *Trace) exclude(temp, proxy string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.temp, t.proxy = temp, proxy
}

func (t *Trace) note(path string, need Need) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, ok := t.files[path]; ok || len(t.files) < maxNoted {
		if t.files == nil {
			t.files = map[string]Need{}
		}
		t.files[path] = max(had, need)
	}
}

func (t *Trace) noteIn(all *map[string]bool, one string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *all == nil {
		*all = map[string]bool{}
	}
	if len(*all) < maxNoted {
		(*all)[one] = true
	}
}

func (t *Trace) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
}

// Beyond returns the accesses that a policy does not allow.
func Beyond(p sandbox.Policy, all []Access) (beyond []Access) {
	read, write := sandbox.Resolved(p.Read), sandbox.Resolved(p.Write)
	for _, a := range all {
		path := a.Path
		if a.Need == ToMake {
			path = filepath.Dir(path)
		}
		if !below(write, path) && (a.Need != ToRead || !below(read, path)) {
			beyond = append(beyond, a)
		}
	}
	return beyond
}

// below reports whether a path is one of the roots, or is below one.
func below(roots []string, path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
	})
}

// Paths returns the shortest lists that allow the accesses beyond a policy, for reading and for
// changing. A directory in which many files were read, or one was made, is listed in place of
// its files, unless it contains the home directory: there, files are listed one by one.
func Paths(beyond []Access, home string) (read, write []string) {
	const many = 3
	perDir := map[string]int{}
	for _, a := range beyond {
		if a.Need == ToRead {
			perDir[filepath.Dir(a.Path)]++
		}
	}
	for _, a := range beyond {
		dir := filepath.Dir(a.Path)
		whole := !holds(dir, home)
		switch {
		case a.Need == ToMake && whole:
			write = append(write, dir)
		case a.Need != ToRead:
			write = append(write, a.Path)
		case perDir[dir] > many && whole:
			read = append(read, dir)
		case !holds(a.Path, home): // a listing of the home directory is never suggested
			read = append(read, a.Path)
		}
	}
	write = outermost(write)
	read = slices.DeleteFunc(outermost(read), func(path string) bool { return below(write, path) })
	return read, write
}

// outermost returns the paths that are not below another one, sorted.
func outermost(paths []string) (all []string) {
	for _, path := range unique(paths) {
		if !below(all, path) {
			all = append(all, path)
		}
	}
	return all
}
