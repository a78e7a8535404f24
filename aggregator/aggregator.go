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
	"strings"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/guarding"
	"github.com/dynmcp/dynmcp/aggregator/internal/judge"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/records"
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
	// Strict ends the run if an eager upstream cannot be started.
	Strict bool
	// IgnoreBrokenTools skips tools of the tree's own servers whose definitions are
	// broken, with a warning. Otherwise such a server does not load.
	IgnoreBrokenTools bool
	// Logger logs what an operator should know; nil logs nothing.
	Logger *slog.Logger
	// Launcher adds to what the entries of servers say; nil adds nothing.
	Launcher Launcher
	// Logins are the logins of servers; nil uses the headers of the config, and offers none.
	Logins Logins
	// Adapter makes the servers of entries with an OpenAPI document; nil makes none.
	Adapter upstream.Adapter
	// StoreDir is the directory in which listings are kept between runs, unless the config
	// names another one; "" keeps nothing.
	StoreDir string
	// Approvals have the tools that were approved; nil approves all.
	Approvals approval.Source
	// ApprovalsChanged receives a value when they may have changed; nil never does.
	ApprovalsChanged <-chan struct{}
	// Listings keeps the listings of a cluster: what one replica has listed, all know. Nil
	// uses StoreDir.
	Listings records.Bucket
	// Cluster says what runs elsewhere; nil runs everything here.
	Cluster Cluster
	// Keys seal the states that hosts bring back; nil uses a random key, which ends with the
	// Aggregator. Replica is the name of this replica in a state, "" without a cluster.
	Keys    *seal.Keys
	Replica string
	// Tasks records the users of tasks for all replicas; nil keeps them in this process.
	Tasks records.Bucket
	// Reserved keeps the causes of failures out of what all hosts read, such as the
	// catalogue: they may be about another user.
	Reserved bool
	// Memory bounds the bytes that are held for hosts; nil takes the bound of the config.
	Memory *membudget.Budget
	// Tap shows the messages of hosts and upstreams; may be nil.
	Tap *event.Tap
	// Surfaces are those of modules, which a config's expose may name beside discover and direct.
	Surfaces []surface.Kind
	// Extensions are what modules add for extensions of MCP.
	Extensions extension.Set
	// Observe receives the events of the run.
	Observe event.Observers
	// Redact hides secrets in failures; those of the config are added to it. Nil hides nothing.
	Redact *redact.Redactor
}

// A Launcher adds to what the entries of servers say of their start.
type Launcher interface {
	// Env returns environment variables that the child process of a server always gets,
	// whatever its entry says.
	Env(cfg *schema.Config, server string) []string
	// Mark adds headers to an HTTP request to a server, which tell that it comes from this run.
	Mark(server string, h http.Header)
}

// bare is the Launcher that adds nothing.
type bare struct{}

func (bare) Env(*schema.Config, string) []string { return nil }
func (bare) Mark(string, http.Header)            {}

// A Cluster knows what the other replicas have.
type Cluster interface {
	remote.Places
	// ResultOf returns a result that another replica keeps for a user, with the limit of its
	// tool, as Result does there. ok is false if there is none.
	ResultOf(ctx context.Context, replica, principal, handle string) (result json.RawMessage, limit int, ok bool)
}

// Logins are the logins of servers.
type Logins interface {
	// For returns how requests to a server are authorized for a principal, whose own login is
	// used; "" is the user who runs dynmcp.
	For(server schema.Server, principal string) upstream.Login
	// Entries returns a function that returns the entry of a server with the values of a principal in
	// place of each ${user:NAME}. If one is missing, the error is a *transports.Failure that is Personal.
	// The values are read once, when the first is needed.
	Entries(principal string) func(server schema.Server) (schema.Server, error)
	// LogIn has a person log in to a server, as a principal. It calls show once, with the address of
	// the login page, and returns when the login is complete or ctx has ended.
	LogIn(ctx context.Context, server schema.Server, principal string, show func(address string)) error
	// Reaches reports whether the browsers of all principals can come back from a login.
	Reaches() bool
}

// An Aggregator serves hosts from the upstreams of one config.
type Aggregator struct {
	served
	set         *lazy.Set
	cancel      context.CancelCauseFunc
	cork        wire.Cork // of all writers to hosts and upstreams
	sessions    *notify.Registry[*sessions.Session]
	server      controlServer
	scopes      scope.Env
	lastRequest atomic.Int64 // the number of the last request
	calls       forward.Env
	taskOwners  *taskowner.Owners
	offers      ask.Offers // of logins
	judge       judge.Env
	results     results.PartialResults  // of results that were cut
	parked      ask.Waiting[parkedCall] // calls of our tools that wait for their hosts
	guarding    *guarding.Env

	observation observe.Reporter
}

// New returns an aggregator for cfg. Nothing is started before Serve. Close
// must be called.
func New(cfg *schema.Config, opts Options) (*Aggregator, error) {
	opts.fill(cfg)
	a := &Aggregator{
		served: served{
			opts: opts, log: opts.Logger, catalog: catalog.New(), changed: notify.NewSignal(),
			references: observe.NewReferences(opts.Logger, opts.Reserved),
		},
		sessions:    notify.NewRegistry[*sessions.Session](),
		observation: observe.Reporter{Observers: opts.Observe, Log: opts.Logger},
	}
	below, states := run{a}, &a.calls.States
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.work = work.New(a.ctx, a.log)
	a.taskOwners = &taskowner.Owners{Bucket: opts.Tasks, Keys: opts.Keys, Context: a.ctx, Work: a.work, Log: a.log}
	a.guarding = &guarding.Env{Catalog: a.catalog, Config: a.lock.RLocker(), Run: below}
	a.fleet = fleet.New(fleet.Dependencies{
		Context: a.ctx, Log: a.log, Observation: a.observation, Work: a.work, Catalog: a.catalog, Sessions: a.sessions, TaskOwners: a.taskOwners,
		Config: a.lock.RLocker(), Places: opts.Cluster, Open: upstream.Open, Run: below, ExtensionLists: opts.Extensions.Lists(),
		SingleWrap: cfg.SingleWrap, Strict: opts.Strict, SkipBroken: opts.IgnoreBrokenTools,
	})
	a.set = a.fleet.Set
	a.scopes = scope.Env{Fleet: a.fleet, Catalog: a.catalog, Work: a.work, Run: below, Extensions: &a.opts.Extensions}
	a.judge = judge.Env{Served: below, States: states, Permits: permit.Permits{States: states}}
	a.calls = forward.Env{
		Env:   call.NewEnv(a.work, a.log, opts.Memory, opts.Keys, opts.Replica),
		Fleet: a.fleet, TaskOwners: a.taskOwners, Observation: a.observation, Sessions: below,
	}
	a.parked.Work = a.work
	a.surfaces = exposed.Start(opts.Surfaces, surfaceRun{a})
	a.offers = ask.Offers{Work: a.work, Log: a.log, States: states, Logins: opts.Logins}
	st, err := a.newState(cfg)
	if err != nil {
		return nil, err
	}
	a.swap(st)
	a.doubts.remember(st, a.catalog)
	a.work.Go(a.announce)
	a.work.Go(func() { a.guarding.Follow(a.ctx, opts.ApprovalsChanged) })
	return a, nil
}

// fill replaces the zero values of options by their defaults.
func (o *Options) fill(cfg *schema.Config) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Keys = cmp.Or(o.Keys, seal.Random())
	o.Memory = cmp.Or(o.Memory, membudget.New(int64(cfg.Gateway.MaxHeldBytes), wire.LargeInUse))
	if o.Launcher == nil {
		o.Launcher = bare{}
	}
}

// Serve answers one host on a pair of streams until the host is gone, ctx
// ends, or an upstream fails that the run needs: the only one, or
// with Options.Strict any eager one.
func (a *Aggregator) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return a.serveLines(ctx, host.NewStdio(in, out, &a.cork), Identity{Local: true, MayLogIn: true, Streams: true, Persistent: true})
}

// ServeConn answers one of many hosts of the user who runs dynmcp, on a connection, which it
// closes. It returns as Serve does. It ends the session of a host that does not read, so that
// no other host waits.
func (a *Aggregator) ServeConn(ctx context.Context, conn net.Conn) error {
	return a.serveLines(ctx, host.NewConn(conn, &a.cork), Identity{Local: true, MayLogIn: true, Streams: true, Persistent: true, Shared: true})
}

func (a *Aggregator) serveLines(ctx context.Context, edge *host.Stdio, id Identity) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	s := a.openSession(id)
	defer s.end()
	conversation := s.converse(edge)
	if a.config().SingleWrap || a.opts.Strict {
		a.fleet.StartEager(true)
	}
	err := edge.Serve(ctx, conversation)
	return cmp.Or(a.Err(), err)
}

// An Identity says who the host of a session is, and what the session shows. Its Server may
// also be ProfilePrefix and the name of a profile.
type Identity = sessions.Identity

// Open begins the session of one of many hosts, which is connected by edge. end ends it, as
// Session.End does.
func (a *Aggregator) Open(edge host.Edge, id Identity) (conversation *host.Session, end func(context.Context)) {
	id.Shared = true
	if name, ok := strings.CutPrefix(id.Server, ProfilePrefix); ok {
		id.Server, id.ProfileName = "", name
	}
	s := a.openSession(id)
	conversation = s.converse(edge)
	return conversation, func(ctx context.Context) {
		defer s.end()
		conversation.End(ctx)
	}
}

// StartShared prepares a run that many hosts share. Eager upstreams start at once, and every
// capability of a host is declared to upstreams. An upstream of both eras has a connection in
// each (internal/fleet, owner.go). In a cluster it has one, in the handshake era or, if it
// starts later, in the era of the first host.
func (a *Aggregator) StartShared() {
	all := sessions.DeclareAll(transports.Stateless)
	if a.opts.Cluster != nil {
		all.Era = transports.Handshake
	}
	a.fleet.Declared.SetFirst(all, a.opts.Cluster != nil)
	a.fleet.StartEager(true)
}

// While returns a context that ends with ctx or with the run. Err returns the upstream's
// failure that ended the run.
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

// A FatalError ends a run: an upstream that the run needs has failed.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// Close stops every upstream and returns when all have ended.
func (a *Aggregator) Close() {
	a.cancel(nil)
	a.set.Close()
	a.work.Close()
	a.surfaces.Close()
	a.results.Close()
	a.observation.End()
}

// Apply makes cfg the config that is served. Servers with unchanged entries keep running,
// with their calls in flight; the others take no more calls and end after those in flight.
// Eager servers are started, evicted servers are offered again, and hosts are notified of
// changed lists. An error changes nothing.
func (a *Aggregator) Apply(cfg *schema.Config) error {
	if cfg.SingleWrap != a.config().SingleWrap {
		return errors.New("a run of one command cannot change to a run with a config, nor the reverse")
	}
	st, err := a.newState(cfg)
	if err != nil {
		return err
	}
	a.swap(st)
	a.fleet.StartEager(false)
	a.changed.Set()
	return nil
}

// CheckTask returns an error if the keys cannot open a record of Options.Tasks.
func CheckTask(keys *seal.Keys, e records.Record) error { return taskowner.Check(keys, e) }

// A Placement says where a server runs, for one connection to it.
type Placement = remote.Placement

// OwnerOf returns the Options.Replica of the replica that has the call or the offer of a
// login that a requestState continues. ok is false if no replica of this cluster made the
// state, and without a cluster.
func (a *Aggregator) OwnerOf(text string) (replica string, ok bool) {
	return a.calls.States.OwnerOf(text)
}
