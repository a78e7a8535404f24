package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Options are what an Aggregator needs beside its config.
type Options struct {
	// Version is dynmcp's own, told to hosts and upstreams.
	Version string
	// Strict makes it fatal that an eager upstream cannot be started.
	Strict bool
	// IgnoreBrokenTools skips tools of the tree's own servers whose definitions are
	// broken, with a warning. Otherwise such a server does not load.
	IgnoreBrokenTools bool
	// Logger takes what an operator should know; nil is silent.
	Logger *slog.Logger
	// ChildEnv returns variables for the child of a server, by its name, which its
	// entry cannot keep from it; nil is none.
	ChildEnv func(cfg *schema.Config, server string) []string
	// Mark adds what requests to a server over HTTP say of who makes them; nil is
	// nothing.
	Mark func(server string, h http.Header)
	// Login returns how requests to a server are authorized; nil is by the headers
	// of the config.
	Login func(schema.Server) upstream.Login
	// LogIn has a person log in to a server, and returns when that is done or ctx has
	// ended. show gets the address of the login page, once. Nil is that nobody can.
	LogIn func(ctx context.Context, server schema.Server, show func(address string)) error
	// StoreDir is where it is kept between runs what servers list, unless the config
	// names another directory; "" keeps nothing.
	StoreDir string
	// Listings is where replicas keep what servers list, in the place of StoreDir: what one
	// has listed is known to all. Nil is StoreDir.
	Listings kv.Bucket
	// Place says where a server runs, each time it is loaded, and may take as long as its
	// load_timeout: for one that is placed so, once in the cluster, or once for a user,
	// principal. Nil is that everything runs here.
	Place func(ctx context.Context, server schema.Server, principal string) (*Placement, error)
	// Keys seal what hosts are given to bring back; nil is a key that ends with the
	// Aggregator. Replica is this replica's name in it, "" where there is but one.
	Keys    *seal.Keys
	Replica string
	// ResultOf returns a result that another replica keeps for a user, with the limit of its
	// tool, as Result does there; nil is that there is no other.
	ResultOf func(ctx context.Context, replica, principal, handle string) (result json.RawMessage, limit int, ok bool)
	// Tasks says to all replicas whose tasks are; nil is that only this one knows.
	Tasks kv.Bucket
	// Reserved keeps the causes of failures out of what all hosts read, such as the
	// catalogue: some may be those of other users.
	Reserved bool
	// Observe is told what happens; nil is nobody.
	Observe *Observer
	// Redact hides secrets in failures; the config's are added. Nil hides
	// nothing.
	Redact *redact.Redactor
}

// An Aggregator serves hosts from the upstreams of one config.
type Aggregator struct {
	opts        Options
	log         *slog.Logger
	state       atomic.Pointer[state]
	catalog     *catalog.Catalog
	set         *lazy.Set
	open        func(schema.Server, upstream.Options) (*upstream.Conn, error) // upstream.Open; tests have others
	ctx         context.Context                                               // ends with the aggregator
	cancel      context.CancelCauseFunc
	work        *work.Group
	peers       sync.Map  // *lazy.Upstream to its *peer
	cork        wire.Cork // of all that hosts and upstreams send
	sessions    *notify.Registry[*session]
	declared    declarations
	changed     notify.Signal      // hosts may read something else now
	server      func() *mcp.Server // of the control plane, made when it is first needed
	startup     startup
	snapshots   notify.Snapshots[listKey]
	records     records
	lastRequest atomic.Int64 // the number of it
	calls       call.Env
	taskOwners  *taskowner.Owners
	offers      ask.Offers    // of logins
	results     results.Store // that reached a host in part
	placer      remote.Placer

	listings *listing.Env // of every upstream

	observation observation
	references  *references // to failures whose cause hosts were not told

	reload sync.RWMutex // held for writing while one config takes the place of another
}

// New returns an aggregator for cfg. Nothing is started before Serve. Close
// must be called.
func New(cfg *schema.Config, opts Options) (*Aggregator, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.ChildEnv == nil {
		opts.ChildEnv = func(*schema.Config, string) []string { return nil }
	}
	if opts.Keys == nil {
		opts.Keys = seal.Random()
	}
	if opts.Mark == nil {
		opts.Mark = func(string, http.Header) {}
	}
	if opts.Login == nil {
		opts.Login = func(schema.Server) upstream.Login { return upstream.Login{} }
	}
	a := &Aggregator{
		opts:    opts,
		log:     opts.Logger,
		catalog: catalog.New(),
		open:    upstream.Open,
		startup: startup{next: make(chan struct{})},

		observation: observation{opts.Observe, opts.Logger},
		references:  newReferences(opts.Logger),
	}
	a.sessions, a.changed, a.declared.known = notify.NewRegistry[*session](), notify.NewSignal(), make(chan struct{})
	a.server = sync.OnceValue(func() *mcp.Server { return newServer(a) })
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.work = work.New(a.ctx, a.log)
	a.taskOwners = &taskowner.Owners{Bucket: opts.Tasks, Keys: opts.Keys, Context: a.ctx, Work: a.work, Log: a.log}
	a.placer = remote.Placer{Place: opts.Place, Work: a.work, Wanted: a.isWanted}
	a.calls.Work, a.calls.Log, a.calls.Waiting.Work = a.work, a.log, a.work
	a.calls.States.Keys, a.calls.States.Replica = opts.Keys, opts.Replica
	a.offers.Work, a.offers.Log, a.offers.States, a.offers.LogIn = a.work, a.log, &a.calls.States, opts.LogIn
	a.set = lazy.NewSet(lazy.Options{Load: a.load, Changed: a.upstreamChanged, Logger: a.log})
	a.listings = &listing.Env{
		Context: a.ctx, Log: a.log, Catalog: a.catalog, Set: a.set, Config: a.reload.RLocker(),
		Work: a.work, Published: a.installed, Refreshed: a.notifyReplicas,
		Keep: func(u *lazy.Upstream, l *catalog.Listing) { a.state.Load().store.KeepListing(u.Server, l) },
	}
	st, err := a.newState(cfg)
	if err != nil {
		return nil, err
	}
	a.swap(st)
	a.work.Go(a.announce)
	return a, nil
}

// Serve answers one host on a pair of streams until the host is gone, ctx
// ends, or an upstream fails that the run cannot do without: the only one, or
// with Options.Strict any eager one.
func (a *Aggregator) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return a.serveLines(ctx, host.NewStdio(in, out, &a.cork), false)
}

// ServeConn answers one of many hosts of the user who runs us on a connection, which it
// closes. It returns as Serve does, and ends the session of a host that does not read rather than have the
// others wait.
func (a *Aggregator) ServeConn(ctx context.Context, conn net.Conn) error {
	return a.serveLines(ctx, host.NewConn(conn, &a.cork), true)
}

func (a *Aggregator) serveLines(ctx context.Context, edge *host.Stdio, shares bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	s := a.openSession(principal{})
	s.local, s.mayLogIn, s.lasts, s.shares = true, true, true, shares
	defer s.end()
	conversation := s.converse(edge)
	if a.config().SingleWrap || a.opts.Strict {
		a.startEager(true)
	}
	err := edge.Serve(ctx, conversation)
	return cmp.Or(a.Err(), err)
}

// A Guest is a host that Open begins the session of.
type Guest struct {
	User     string // who is told apart from others by this name
	Server   string // the only one that is served, as it is by itself; "" is all
	Tree     bool   // the API that the tree has over HTTP is served: meta_tree, meta_desc and meta_call, whatever the config exposes
	Lasts    bool   // the session is not for one request alone
	MayLogIn bool   // the user is who runs dynmcp, on this machine
	Local    bool   // nobody but the user of this machine reads what the host is told
}

// Open begins the session of a host that edge reaches, one of many. end ends it, as
// Session.End does. It is for edges that many hosts share; the others call Serve.
func (a *Aggregator) Open(edge host.Edge, g Guest) (conversation *host.Session, end func(context.Context)) {
	s := a.openSession(principal{g.User})
	s.shares, s.only, s.tree, s.lasts, s.mayLogIn, s.local = true, g.Server, g.Tree, g.Lasts, g.MayLogIn, g.Local
	conversation = s.converse(edge)
	return conversation, func(ctx context.Context) {
		defer s.end()
		conversation.End(ctx)
	}
}

// converse connects a session with its host.
func (s *session) converse(edge host.Edge) *host.Session {
	conversation := host.NewSession(s.id, edge, s.observed(host.Options{
		Control:            s.agg.server(),
		HandleRequest:      s.handle,
		HandleNotification: s.handleNotification,
		Busy:               s.agg.anyLoading,
		Logger:             s.agg.log,
	}))
	s.attach(conversation)
	if o := s.agg.opts.Observe; o != nil {
		o.Session(s.info(), true)
	}
	return conversation
}

// ableToAll is what a run that many hosts share declares to upstreams: all that a
// host may be able to do. What the host of a call is not able to do is refused when
// it is asked.
const ableToAll = `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`

// StartShared readies a run that many hosts share: upstreams that are not lazy start
// at once, and all are told of whatever a host may be able to do. One that speaks
// both eras is spoken to in each, see era.go; in a cluster in that of the handshake,
// and if it starts later in that of the first host.
func (a *Aggregator) StartShared() {
	all := declaration{capabilities: json.RawMessage(ableToAll), era: transports.Stateless}
	if a.opts.Place != nil {
		all.era = transports.Handshake
	}
	a.declared.setFirst(all, a.opts.Place != nil)
	a.startEager(true)
}

// While returns a context that ends with ctx, and when the run ends because an
// upstream failed that it cannot do without. Err says which.
func (a *Aggregator) While(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(a.ctx, cancel)
	return ctx
}

// Err returns the *FatalError that ended the run, nil if none did.
func (a *Aggregator) Err() error {
	if fatal, ok := errors.AsType[*FatalError](context.Cause(a.ctx)); ok {
		return fatal
	}
	return nil
}

// A FatalError ends a run: an upstream that it cannot do without failed.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// Close stops every upstream and returns when nothing is left of them.
func (a *Aggregator) Close() {
	a.cancel(nil)
	a.set.Close()
	a.work.Close()
	a.results.Close()
}

func (a *Aggregator) config() *schema.Config { return a.state.Load().cfg }

// end drops what only this session wanted of upstreams.
func (s *session) end() {
	var verbosities map[*lazy.Upstream]notify.Level
	if s.recipient.Level().IsSet() {
		verbosities = s.verbosities()
	}
	s.recipient.Leave()
	if o := s.agg.opts.Observe; o != nil && !s.replica {
		o.Session(s.info(), false)
	}
	s.agg.offers.Drop(s)
	if s.lasts { // else the request that takes it up has a session of its own
		s.agg.calls.Waiting.Abandon(nil, func(c *call.Flight, _ *host.Request) bool { return c.Of == s })
	}
	subscribed := s.recipient.End()
	s.disown()
	of := levelsOf(s.agg, verbosities, func(before, now notify.Level) bool { return now.Severity != before.Severity })
	if len(of) > 0 {
		s.agg.work.Go(func() { of.send(s.agg.ctx, s.agg) })
	}
	s.dropSubscriptions(subscribed)
}

// single returns the upstream of single-wrap mode, nil in config mode.
func (a *Aggregator) single() *lazy.Upstream {
	if all := a.set.All(); a.config().SingleWrap && len(all) == 1 {
		return all[0]
	}
	return nil
}

// upstreamChanged follows the state of an upstream.
func (a *Aggregator) upstreamChanged(u *lazy.Upstream) {
	status := u.Status()
	a.noteStatus(u, status)
	switch status.State {
	case lazy.Evicted:
		a.log.Warn("evicted", "upstream", status.Name, "err", status.Err)
	case lazy.Lost:
		a.log.Warn("lost", "upstream", status.Name, "err", status.Err)
	case lazy.Ready:
		a.log.Info("ready", "upstream", status.Name)
	}
	a.changed.Set()
}

// noteStatus has the catalogue say why an upstream is not there and whether it wants a
// login, unless a new config has replaced it.
func (a *Aggregator) noteStatus(u *lazy.Upstream, status lazy.Status) {
	a.reload.RLock()
	defer a.reload.RUnlock()
	if !a.set.Has(u) {
		return
	}
	switch status.State {
	case lazy.Evicted:
		if u.Owner == "" && u.Status().State == lazy.Evicted { // else a new config has offered it again
			a.catalog.Drop(status.Name)
		}
	case lazy.Lost:
		a.catalog.Fail(status.Name, a.reason(status.Err))
		if wantsLogin(status.Err) {
			a.catalog.Note(status.Name, "(run: dynmcp login "+status.Name+")")
		}
	case lazy.Ready:
		a.catalog.Note(status.Name, "")
	}
}
