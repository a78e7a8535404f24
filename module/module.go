// Package module says what a feature of dynmcp can add to it. It has types and nothing else.
//
// A feature is a folder below modules with a [Module], and a line of the table in
// cmd/dynmcp/modules.go. Without its line the program is built without the feature. The core
// imports no module, and a module imports no other.
package module

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Module is a feature that the core does not know. A zero field is what the feature lacks.
type Module struct {
	// Name is the name of its folder. It names the module to people.
	Name string
	// Keys are its keys of the config.
	Keys []schema.Section
	// Surfaces are those that a config's expose may name with it.
	Surfaces []surface.Kind
	// Secrets are its schemes of references to secrets.
	Secrets []secretref.Scheme
	// Verbs are its commands.
	Verbs []cli.Verb
	// Launcher has a key of entries that changes how their programs start; nil for none.
	Launcher Launcher
	// Trust judges the definitions of tools; nil approves all.
	Trust Trust
	// Adapter makes servers of what does not speak MCP; nil for none.
	Adapter upstream.Adapter
	// Adder returns a form of the verb add; nil for none.
	Adder func() Adder
	// Cluster returns what joins the runs of serve together; nil for nothing.
	Cluster func() Cluster
	// Page returns the page of a run of serve at /debug, whose requests are authorized; nil for none.
	// mode is the key ui of the gateway, live whether /debug/state and /debug/stream are served.
	Page func(mode string, live bool, tabs []Tab) http.Handler
	// Tabs are its views of the page, and its parts of other views.
	Tabs []Tab
	// Start begins what it does in a run.
	Start func(Run) (Part, error)
}

// A Tab is a view of the page of runs, or a part of others.
type Tab struct {
	// Name is the view that the script adds to the page's views; "" for a part of others.
	Name string
	// Live says that the view shows what happens in a run of serve, which asks it for /debug/state.
	// The other views ask the API of the page.
	Live bool
	// Script runs after that of the page's own views, in its scope.
	Script string
}

// A Launcher is for the keys of a module whose value is a command.Launcher: they limit programs.
type Launcher interface {
	// Limit returns an entry with the usual limits.
	Limit(schema.Server) schema.Server
	// Warning says which limits of an entry this system cannot enforce, "" if it can, and whether the
	// server is started all the same.
	Warning(schema.Server) (text string, starts bool)
	// Explain starts a server again that has failed within its limits, and says what they refused it,
	// "" if nothing.
	Explain(context.Context, schema.Server) string
}

// A Trust knows what was approved, and what is suspicious, of the tools that servers list.
type Trust interface {
	approval.Source
	// Linter returns what looks for suspicious tools. It knows the other tools that the servers of a
	// config last listed.
	Linter(*schema.Config) Linter
}

// A Linter looks for suspicious tools.
type Linter interface {
	// Lint returns what is suspicious in the tools of a view, approved or not, a line for each; with
	// all also what many harmless tools have.
	Lint(view *catalog.View, all bool) []string
}

// An Adder is a form of the verb add.
type Adder interface {
	// Takes reports whether the form is meant by the name of a server and the flags.
	Takes(name string) bool
	// Help returns what the help of add says of it, and an example.
	Help() (long, example string)
	// Flags says what its flags go with, and what to do, for an add that is of another form.
	Flags() (goWith, remedy string)
	// AddFlags adds its flags to add.
	AddFlags(*cobra.Command)
	// Entry makes the entry, and shows it to the user. keep stores its secrets; it is called
	// before the entry is written.
	Entry(cmd *cobra.Command, name string, given Given) (entry schema.Server, keep func() error, err error)
}

// Given is what the other flags of add say.
type Given struct {
	Config      string            // the config to edit, "" for the one in the working directory
	Description string            // "" takes that of the registry
	Env         map[string]string // answers or further variables
	Headers     map[string]string // answers or further headers
	URL         string            // the address of a remote server
	Program     bool              // a command, its arguments or directory, or a transport is given
	Sandbox     bool
	Force       bool // replace an existing entry
}

// A Run is what a module sees of a run.
type Run struct {
	Config *schema.Config // later ones come with Follow
	Log    *slog.Logger   // never nil
	Hosts  bool           // hosts are served; otherwise a verb of the command line asks
	Shared bool           // by the verb serve, which serves many hosts
	// Replica is the name of this replica, "" without a cluster.
	Replica string
	// Logins are those that servers are called with, and what users keep beside them.
	Logins Logins
}

// Logins have a store, that of the cluster if there is one.
type Logins interface {
	Store() (*logins.Store, error)
	// Reaches reports whether the browsers of users come back to a gateway.
	Reaches() bool
	// LogIn has a user log in to a server. It calls show with the address of the page that he opens, and returns when
	// he has logged in or ctx has ended.
	LogIn(ctx context.Context, server schema.Server, principal string, show func(address string)) error
}

// A Part is what a module does in a run: it hears the events. End ends what it began.
type Part interface {
	event.Observer
	// Follow changes to the settings of another config. After an error they are unchanged.
	Follow(*schema.Config) error
}

// A State is a run as it is now.
type State interface {
	Upstreams() []event.Server
	Sessions() []event.Session
	Failures() []event.Failure
	Memory() (bytes, limit int64)
}

// An OwnPart is a Part that serves each user of a gateway what is his own.
type OwnPart interface {
	Part
	gateway.OwnRoute
}

// A WebPart is a Part that serves what a run that many hosts share does.
type WebPart interface {
	Part
	// Watch is called once, before hosts are served.
	Watch(State)
	// Hear makes it hear the messages of hosts, too, for the page; it is called at most once.
	Hear(*event.Tap)
	// Page returns the paths that it serves beside the debug page, whose requests are authorized.
	Page() map[string]http.Handler
	// Metrics serves /metrics of the gateway.
	Metrics() http.Handler
}

type contextKey struct{}

// Tabs returns the tabs of modules, in their order.
func Tabs(all []Module) (tabs []Tab) {
	for _, m := range all {
		tabs = append(tabs, m.Tabs...)
	}
	return tabs
}

// With returns a context of a program that has these modules and no others.
func With(ctx context.Context, all []Module) context.Context {
	return context.WithValue(ctx, contextKey{}, all)
}

// Of returns the modules of the program that a context belongs to.
func Of(ctx context.Context) []Module {
	all, _ := ctx.Value(contextKey{}).([]Module)
	return all
}

// Shown returns a context of a program whose modules have surfaces and trust, and nothing else: for requests of dynmcp's
// own, of which no module is told.
func Shown(ctx context.Context) context.Context {
	return With(ctx, []Module{{Surfaces: SurfacesOf(ctx), Trust: TrustOf(ctx)}})
}

// AdapterOf returns the adapter of the modules of ctx, nil without one.
func AdapterOf(ctx context.Context) upstream.Adapter {
	for _, m := range Of(ctx) {
		if m.Adapter != nil {
			return m.Adapter
		}
	}
	return nil
}

// LauncherOf returns the launcher of the modules of ctx, nil without one.
func LauncherOf(ctx context.Context) Launcher {
	for _, m := range Of(ctx) {
		if m.Launcher != nil {
			return m.Launcher
		}
	}
	return nil
}

// TrustOf returns the trust of the modules of ctx, nil without one.
func TrustOf(ctx context.Context) Trust {
	for _, m := range Of(ctx) {
		if m.Trust != nil {
			return m.Trust
		}
	}
	return nil
}

// LinterOf returns the linter of the modules of ctx for a config. Without one it finds nothing.
func LinterOf(ctx context.Context, cfg *schema.Config) Linter {
	if t := TrustOf(ctx); t != nil {
		return t.Linter(cfg)
	}
	return blind{}
}

type blind struct{}

func (blind) Lint(*catalog.View, bool) []string { return nil }

// SectionsOf returns what the modules of the program that a context belongs to add to configs: keys,
// and names of surfaces.
func SectionsOf(ctx context.Context) (sections []schema.Section) {
	for _, m := range Of(ctx) {
		sections = append(sections, m.Keys...)
		if len(m.Surfaces) > 0 {
			names := schema.Section{Module: m.Name}
			for _, kind := range m.Surfaces {
				names.Surfaces = append(names.Surfaces, kind.Name)
			}
			sections = append(sections, names)
		}
	}
	return sections
}

// SurfacesOf returns the surfaces of the modules of the program that a context belongs to.
func SurfacesOf(ctx context.Context) (kinds []surface.Kind) {
	for _, m := range Of(ctx) {
		kinds = append(kinds, m.Surfaces...)
	}
	return kinds
}

// SchemesOf returns the schemes of references to secrets of the program that a context belongs to.
func SchemesOf(ctx context.Context) (schemes []secretref.Scheme) {
	for _, m := range Of(ctx) {
		schemes = append(schemes, m.Secrets...)
	}
	return schemes
}

// Load returns the options of a load of a config, with what the modules of the program know of configs.
func Load(ctx context.Context) schema.LoadOptions {
	return schema.LoadOptions{Sections: SectionsOf(ctx), Schemes: secretref.Names(SchemesOf(ctx))}
}
