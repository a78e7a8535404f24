package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A server may list by what its client can answer. A run that hosts share declares everything to
// its servers, so a host that can answer less would be listed what it cannot use. What the server
// lists to such a host is found by comparing two lists that are fetched in the same way, once with
// everything declared and once with what the host declares; the difference is stored with the
// listing.
//
// In the stateless era both come from the connection in use. In the handshake era each needs one of
// its own, for a moment, and thus a process. So only a server is compared that shows that it regards
// its client: its lists change as soon as it is introduced, or it has asked a host for something. If
// it lists the same where nothing is declared, all hosts see the same.

// Comparisons are those of the servers of a fleet.
type Comparisons struct {
	fleet *Fleet

	mu   sync.Mutex
	done map[comparison]chan struct{} // closed at the end
	last map[string]chan struct{}     // the last of done of each server
}

// A comparison is of the lists of a server, for hosts with certain abilities.
type comparison struct {
	server string
	able   catalog.Abilities
}

// begin returns the channel to close at the end of a comparison, nil if it was made before, and the
// end of the one of the server to wait for, nil if there is none.
func (cs *Comparisons) begin(c comparison) (done chan struct{}, before <-chan struct{}) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.done[c] != nil {
		return nil, nil
	}
	if cs.done == nil {
		cs.done, cs.last = map[comparison]chan struct{}{}, map[string]chan struct{}{}
	}
	done, before = make(chan struct{}), cs.last[c.server]
	cs.done[c], cs.last[c.server] = done, done
	return done, before
}

// Pending returns a channel that is closed at the end of a comparison for a session's host, nil if
// none is in progress.
func (cs *Comparisons) Pending(s *sessions.Session) <-chan struct{} {
	able := s.Able()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, done := range cs.done {
		select {
		case <-done:
		default:
			if c.able == able && cs.fleet.Includes(s, c.server) {
				return done
			}
		}
	}
	return nil
}

// Compare finds out what servers list to a session's host, where it may differ from what they list
// to others and is not known.
func (cs *Comparisons) Compare(s *sessions.Session) {
	f, able := cs.fleet, s.Able()
	if !s.Shared || s.Replica || f.Places != nil {
		return
	}
	for _, u := range f.Set.All() {
		if !f.Includes(s, u.Server.Name) {
			continue
		}
		if u.Conn() == nil { // its host may have another
			u = cmp.Or(f.ExistingFor(s, u), u)
		}
		p, conn := f.Of(u), u.Conn()
		if conn == nil || Isolated(&u.Server) || u.Server.Place == schema.PlaceOne ||
			conn.Era() == transports.Handshake && !p.Record.Entry.regardsClient.Load() {
			continue
		}
		if known, _ := f.Catalog.KnowsListsFor(able, u.Server.Name); known {
			continue
		}
		done, before := cs.begin(comparison{u.Server.Name, able})
		if done != nil && !f.Work.Go(func() {
			defer close(done)
			if before != nil {
				<-before
			}
			if err := cs.compare(p, able); err != nil {
				f.Log.Debug("what it lists to hosts with other capabilities is not known", "upstream", u.Server.Name, "err", err)
			}
		}) {
			close(done)
		}
	}
}

// compare compares the lists for hosts with these abilities with those for a host with all: at
// first the lists for a host with none.
func (cs *Comparisons) compare(p *Endpoint, able catalog.Abilities) error {
	f, name := cs.fleet, p.Upstream.Server.Name
	var all *catalog.Listing
	for _, able := range []catalog.Abilities{0, able} {
		known, mayDiffer := f.Catalog.KnowsListsFor(able, name)
		if known || !mayDiffer {
			continue
		}
		if all == nil {
			var err error
			if all, err = cs.listFor(p, catalog.AbleToAll); err != nil {
				return err
			}
		}
		some, err := cs.listFor(p, able)
		if err != nil {
			return err
		}
		before := f.Catalog.View()
		f.Catalog.NoteUnlisted(able, name, all.Beyond(some))
		f.Listings.Run.Listed(p.Upstream, before)
	}
	if all != nil {
		p.Listing.Keep()
	}
	return nil
}

// listFor fetches the lists for a host with these abilities.
func (cs *Comparisons) listFor(p *Endpoint, able catalog.Abilities) (*catalog.Listing, error) {
	f := cs.fleet
	ctx, cancel := context.WithTimeout(f.Context, p.Upstream.Server.LoadTimeout)
	defer cancel()
	if conn := p.Upstream.Conn(); conn != nil && conn.Era() == transports.Stateless {
		return listing.FetchFor(ctx, conn, able.Capabilities(), f.ExtensionLists, f.Log)
	}
	opts, heard := optionsOf(p), &listener{}
	opts.Peer = heard
	conn, err := f.Open(connectedTo(p), opts)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Handshake(ctx, able.Capabilities()); err != nil {
		return nil, err
	}
	for {
		changes := heard.changes.Load()
		l, err := listing.Fetch(ctx, conn, f.ExtensionLists, f.Log)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(unchanged):
		case <-ctx.Done():
		}
		if changes == heard.changes.Load() || ctx.Err() != nil {
			return l, ctx.Err()
		}
	}
}

// unchanged is how long the lists of a new connection must not change to be compared.
const unchanged = 250 * time.Millisecond

// A listener counts the notifications of a connection that only lists.
type listener struct{ changes atomic.Int64 }

// Notify implements transports.Peer.
func (l *listener) Notify(string, json.RawMessage) { l.changes.Add(1) }

// Request implements transports.Peer.
func (l *listener) Request(context.Context, string, json.RawMessage) (answer func() (json.RawMessage, error)) {
	return ask.NoHost("no host is asked: the connection is for lists")
}

// noteRegard records that a server regards what its client can answer.
func (cs *Comparisons) noteRegard(p *Endpoint) {
	if p.Record.Entry.regardsClient.Swap(true) {
		return
	}
	cs.fleet.Work.Go(func() {
		for _, s := range cs.fleet.Sessions.All() {
			cs.Compare(s)
		}
	})
}
