package aggregator

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
)

// newQuiet returns an aggregator with one server, which is not started.
func newQuiet(t testing.TB, opts Options) *Aggregator {
	t.Helper()
	agg, err := New(configOf(t, `{"mcp":{"up":{"command":"none","description":"d"}}}`), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(agg.Close)
	return agg
}

// join returns a session after the handshake, and its host.
func join(agg *Aggregator, user string) (session, *listener) {
	host := &listener{}
	s := agg.openSession(Identity{User: user})
	s.Recipient.Initialize()
	s.Join(host)
	return s, host
}

var promptsList = listing.Lists[slices.IndexFunc(listing.Lists, func(l listing.List) bool { return l.Method == "prompts/list" })]

// A host is not notified of a list that it has just read, or of an older one.
func TestNoChangeIsAnnouncedThatWasRead(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	s, host := join(agg, "")
	agg.catalog.Put("up", agg.catalog.Index("up", &catalog.Listing{Prompts: []json.RawMessage{[]byte(`{"name":"a"}`)}}))
	older := s.Snapshot()
	agg.catalog.Put("up", agg.catalog.Index("up", &catalog.Listing{Prompts: []json.RawMessage{[]byte(`{"name":"b"}`)}}))
	newer := s.Snapshot()
	if s.Recipient.Read(newer, catalog.NoTasks, promptsList, newer.Content) {
		t.Error("the newest list counts as outdated")
	}
	s.Recipient.Announce(older, catalog.NoTasks, s.Reading(older, true), true)
	if slices.Contains(host.all(), "notifications/prompts/list_changed ") {
		t.Error("the host is told of a list that is older than what it read")
	}
	s.Recipient.Announce(newer, catalog.NoTasks, s.Reading(newer, true), true)
	if slices.Contains(host.all(), "notifications/prompts/list_changed ") {
		t.Error("the host is told of what it has just read")
	}
	// A host that was notified, and then read an older list, must be notified again.
	if !s.Recipient.Read(older, catalog.NoTasks, promptsList, older.Content) {
		t.Error("an older list counts as the newest")
	}
	s.Recipient.Announce(newer, catalog.NoTasks, s.Reading(newer, true), true)
	if got := host.all(); !slices.Contains(got, "notifications/prompts/list_changed ") {
		t.Errorf("the host has read an old list and is told only %q", got)
	}
}

// show adds a tool to the surfaces of all hosts.
func (st *state) show(t surface.Tool) {
	all, whole, shown := *st.exposed, *st.exposed.Whole, *st.exposed.Whole.Usual.Usual
	shown.Tools = append(slices.Clone(shown.Tools), t)
	whole.Usual = exposed.Variants{Usual: &shown, Searching: &shown}
	all.Whole = &whole
	st.exposed = &all
}

// A surface that panics loses its list. The process and other lists are not affected.
func TestPanicDoesNotEndAnnouncing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agg := newQuiet(t, Options{})
		defer agg.Close()
		_, host := join(agg, "")
		st := *agg.served.state.Load()
		st.show(surface.Tool{Definitions: func(*catalog.View, int) []json.RawMessage { panic("boom") }})
		agg.served.state.Store(&st)
		agg.changed.Set()
		time.Sleep(settling) // later lists are changes
		for _, name := range []string{"a", "b"} {
			agg.catalog.Put("up", agg.catalog.Index("up", &catalog.Listing{Prompts: []json.RawMessage{[]byte(`{"name":"` + name + `"}`)}}))
			agg.changed.Set()
			quiesce()
			if got := host.take(); !slices.Contains(got, "notifications/prompts/list_changed ") {
				t.Errorf("%s: the host got %q", name, got)
			}
		}
	})
}

// The digests of lists are made once for each change, whatever the number of
// sessions.
func TestDigestsAreShared(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	made := 0
	st := *agg.served.state.Load()
	st.exposed.Whole.Usual.Usual = &surface.Surface{}
	st.show(surface.Tool{Definitions: func(*catalog.View, int) []json.RawMessage { made++; return nil }})
	agg.served.state.Store(&st)
	for range 100 {
		s, _ := join(agg, "")
		now := s.Snapshot()
		s.Recipient.Announce(now, catalog.NoTasks, s.Reading(now, true), true)
	}
	if made != 1 {
		t.Errorf("the tools were listed %d times, want once", made)
	}
}

// A panic in a goroutine that lists fails the load, and is its error.
func TestPanicWhileListingFailsTheLoad(t *testing.T) {
	t.Parallel()
	onStage(t, "-- setup --\nhost 2025-11-25 {}\nupstream lazy 2025-11-25 {\"tools\":{}}\n", func(t *testing.T, st *stage) {
		st.agg.fleet.Log = slog.New(&panicking{Handler: slog.DiscardHandler, over: "advertised but not known"})
		up, host := st.upstreams[0], st.hosts[0]
		up.scripted = true
		up.answers["initialize"] = ""
		host.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"load_mcp","arguments":{"mcp_name":"up"}}}`)
		for range 4 {
			time.Sleep(settling)
			for _, m := range up.messages() {
				switch m.Method {
				case "initialize":
					up.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
				case "tools/list":
					up.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no"}}`)
				}
			}
		}
		if got := strings.Join(host.take(), "\n"); !strings.Contains(got, "internal error: boom") {
			t.Errorf("the host got %q", got)
		}
	})
}

// A panicking logger panics at a message.
type panicking struct {
	slog.Handler
	over   string
	panics int
}

func (p *panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p *panicking) WithAttrs([]slog.Attr) slog.Handler { return p }

func (p *panicking) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, p.over) {
		p.panics++
		panic("boom")
	}
	return nil
}

// A panic of a host that is told of a start ends the report only.
func TestPanicInAStartReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agg := newQuiet(t, Options{})
		defer agg.Close()
		stop := agg.work.ReportWait(t.Context(), &panickingHost{}, []byte("1"), "starting up")
		time.Sleep(time.Minute)
		stop()
	})
}

type panickingHost struct{ listener }

func (*panickingHost) Notify(string, json.RawMessage) { panic("boom") }

// A listener is a host that keeps notifications and answers no request.
type listener struct {
	mu  sync.Mutex
	got []string
}

func (l *listener) Notify(method string, params json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, method+" "+string(params))
}

func (l *listener) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return nil, nil }
}

// take returns what the host was sent since the last take.
func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := l.got
	l.got = nil
	return got
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}
