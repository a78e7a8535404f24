package notify

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Content is the lists that views of the catalogue show to one kind of hosts.
type Content struct {
	Views *catalog.Views
	Lists Lists
	Work  *work.Group // logs a panic

	mu      sync.Mutex
	digests map[digestKey]func() [sha256.Size]byte // each computed when first needed
}

// Lists returns the entries of lists for the hosts of a view.
type Lists interface {
	Entries(list listing.List, view *catalog.View) []json.RawMessage
}

// A digestKey identifies a list as read by hosts of a view.
type digestKey struct {
	method string
	view   *catalog.View
}

// Result returns the list for a host with these kinds of tasks: {key: [entries…]}, every entry
// unchanged.
func (c *Content) Result(list listing.List, tasks catalog.Tasks) json.RawMessage {
	return fmt.Appendf(nil, `{%q:%s}`, list.Key, wire.Array(c.Lists.Entries(list, c.Views[tasks])))
}

func (c *Content) digest(list listing.List, tasks catalog.Tasks) [sha256.Size]byte {
	c.mu.Lock()
	key := digestKey{list.Method, c.Views[tasks]}
	digest := c.digests[key]
	if digest == nil {
		digest = sync.OnceValue(func() (digest [sha256.Size]byte) {
			defer c.Work.Recover() // a list that cannot be rendered must not affect the others
			return sha256.Sum256(c.Result(list, tasks))
		})
		if c.digests == nil {
			c.digests = map[digestKey]func() [sha256.Size]byte{}
		}
		c.digests[key] = digest
	}
	c.mu.Unlock()
	return digest()
}

// A Snapshot is the readable content for one kind of hosts at one moment: a function of the config
// and the catalogue.
type Snapshot struct {
	*Content
	Config   any             // another config means another snapshot
	Unloaded func() *Content // of a catalogue without lazy servers loaded in this run
	// Stable is for requests that are sessions of their own.
	Stable *StableContent

	generation int64 // grows with every snapshot
	taken      int64 // the order in which they were taken last
}

// maxKinds is how many kinds of hosts have a latest snapshot: a principal may be a kind.
const maxKinds = 1024

// Snapshots holds the latest ones, by kind of host, so that sessions share digests.
type Snapshots[K comparable] struct {
	mu         sync.Mutex
	generation int64
	takes      int64
	last       map[K]*Snapshot
}

// Take returns the last snapshot for a kind of host if it is current, otherwise current().
func (ss *Snapshots[K]) Take(kind K, current func() *Snapshot) *Snapshot {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	last, now := ss.last[kind], current()
	now.Stable = &StableContent{}
	ss.takes++
	now.taken = ss.takes
	if last != nil && last.Config == now.Config {
		if last.Views == now.Views {
			last.taken = ss.takes
			return last
		}
		now.Stable = last.Stable
	}
	if ss.last == nil {
		ss.last = map[K]*Snapshot{}
	}
	if last == nil && len(ss.last) >= maxKinds {
		ss.forgetOldest()
	}
	ss.generation++
	now.generation = ss.generation
	ss.last[kind] = now
	return now
}

// forgetOldest forgets the snapshot that was not taken for the longest time.
func (ss *Snapshots[K]) forgetOldest() {
	var oldest K
	least := ss.takes
	for kind, s := range ss.last {
		if s.taken < least {
			oldest, least = kind, s.taken
		}
	}
	delete(ss.last, oldest)
}

// A StableContent is the content shown, until the config changes, to a host that reads a list only once,
// or whose provider caches requests by it. It is a function of the config and of the catalogue
// when its session first listed, whatever is loaded afterwards. It includes the eager servers
// for which that list waited.
type StableContent struct {
	mu      sync.Mutex
	config  any
	content *Content
}

// At returns the content at a snapshot: nil if nothing is pinned yet and, because ready is false,
// nothing may be.
func (p *StableContent) At(now *Snapshot, ready bool) *Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.content == nil || p.config != now.Config {
		if !ready {
			return nil
		}
		p.config, p.content = now.Config, now.Unloaded()
	}
	return p.content
}

// A version identifies the bytes of a list.
type version struct {
	generation int64
	digest     [sha256.Size]byte
}

// A Reading returns the content that a session's host reads for a list at a snapshot, nil if it is
// not known yet.
type Reading func(list listing.List) *Content

// versions returns the versions of the known lists.
func (now *Snapshot) versions(tasks catalog.Tasks, reading Reading) map[string]version {
	all := map[string]version{}
	for _, list := range listing.Lists {
		if c := reading(list); c != nil {
			all[list.Method] = version{now.generation, c.digest(list, tasks)}
		}
	}
	return all
}

// Announce notifies the host of lists that differ from what it read last. A list that it has not
// read counts from the moment when it would have been answered: changes while upstreams start,
// when settled is false, are not announced.
func (to *Recipient[S]) Announce(now *Snapshot, tasks catalog.Tasks, reading Reading, settled bool) {
	versions := now.versions(tasks, reading)
	to.mu.Lock()
	if !to.initialized && len(to.streams) == 0 {
		to.mu.Unlock()
		return
	}
	changed := map[string]bool{} // by notification
	for _, list := range listing.Lists {
		last, known := to.read[list.Method]
		v, due := versions[list.Method]
		if !due || !known && !settled || v.generation < last.generation {
			continue // or meanwhile the host has read a newer one
		}
		if known && v.digest != last.digest {
			changed[list.Changed] = true
		}
		to.read[list.Method] = v
	}
	to.mu.Unlock()
	for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"} {
		if changed[method] {
			to.Notify(method, nil, func(s Stream) bool { return s.Changes[method] })
		}
	}
}

// CountFrom makes the present versions the reference for lists that the host has not read.
func (to *Recipient[S]) CountFrom(now *Snapshot, tasks catalog.Tasks, reading Reading) {
	versions := now.versions(tasks, reading)
	to.mu.Lock()
	defer to.mu.Unlock()
	for method, v := range versions {
		if _, known := to.read[method]; !known {
			to.read[method] = v
		}
	}
}

// Read notes that the host was given a list. It reports true if that is older than what
// the host was notified of, so that it must be notified again.
func (to *Recipient[S]) Read(now *Snapshot, tasks catalog.Tasks, list listing.List, content *Content) (outdated bool) {
	v := version{now.generation, content.digest(list, tasks)}
	to.mu.Lock()
	defer to.mu.Unlock()
	outdated = v.generation < to.read[list.Method].generation
	to.read[list.Method] = v
	return outdated
}
