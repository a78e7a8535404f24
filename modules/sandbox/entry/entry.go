// Package entry has the key sandbox of an entry, and starts the program of the entry within its limits.
package entry

import (
	"os"
	"path/filepath"
	"reflect"

	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Keys are the keys of an entry.
type Keys struct {
	// What the program and all that it starts may access: true is what programs need to run, without the home directory; an object allows more, or less of the network. On Linux and macOS; elsewhere the server is not started, unless best_effort is set. See docs/sandbox.md.
	Sandbox Sandbox `json:"sandbox" group:"sandbox" default:"false" example:"{read: [~/notes], network: [api.github.com]}"`

	trace *box.Trace // records what the program does, if not nil
}

// Check checks the hosts.
func (k *Keys) Check(fail func(what, hint string, at ...any)) {
	for i, host := range k.Sandbox.Network.Hosts {
		if err := box.CheckHost(host); err != nil {
			fail("this is not a host", "write a name, *.name, an address or a network, and a port where it is not 80 or 443", "sandbox", "network", i)
		}
	}
}

// Sandbox describes the access of a program. The zero value is no sandbox: the program has the
// access of its user.
type Sandbox struct {
	// On reports that there is a sandbox.
	On bool `json:"-"`
	// Files and directories that the program may read, and run programs of. A path may begin with ~; a relative one is in cwd.
	Read []string `json:"read" default:"[]" example:"[~/notes]"`
	// Files and directories that the program may change, too.
	Write []string `json:"write" default:"[]" example:"[./data]"`
	// The hosts that the program may connect to: all, none, or a list, which it reaches through a proxy inside dynmcp: names, *.names, addresses and networks, with a port unless it is 80 or 443. A name allows public addresses only.
	Network schema.Network `json:"network" default:"all" example:"[api.github.com, \"*.example.com:443\"]"`
	// What the program inherits of dynmcp's own environment, in the forms of inherit_env; the names that inherit_env lists are inherited, too.
	Env schema.Inherit `json:"env" default:"false" example:"[PATH, HOME, LANG]"`
	// Start the program even if this system cannot enforce all of that, with a warning that lists the missing limits.
	BestEffort bool `json:"best_effort" default:"false" example:"true"`
}

// Usual is the sandbox of "sandbox": true.
var Usual = Sandbox{On: true, Env: schema.Inherit{None: true}}

// Switch implements schema.Switch.
func (b *Sandbox) Switch() { b.On = true }

// Example implements schema.Switch.
func (*Sandbox) Example() string { return `{"read": ["~/notes"], "network": "none"}` }

// Written implements schema.Switch.
func (b Sandbox) Written() any {
	switch {
	case reflect.DeepEqual(b, Usual):
		return true
	case b.Env.None: // the default
		b.Env = schema.Inherit{}
	case len(b.Env.Names) == 0:
		b.Env.Names = []string{} // written as an empty list, which is not the default
	}
	return b
}

// Of returns the sandbox of a server.
func Of(s schema.Server) Sandbox { return schema.ServerKeys[Keys](s).Sandbox }

// Within returns a server with a sandbox.
func Within(s schema.Server, access Sandbox) schema.Server { return s.WithKeys(Keys{Sandbox: access}) }

// Boxed returns the sandbox of a server or, if it has none, that of "sandbox": true.
func Boxed(s schema.Server) Sandbox {
	if access := Of(s); access.On {
		return access
	}
	return Usual
}

// Traced returns a server whose starts are recorded, in its sandbox or, if it has none, that of "sandbox": true.
func Traced(s schema.Server, trace *box.Trace) schema.Server {
	return s.WithKeys(Keys{Boxed(s), trace})
}

// Needs returns what a server read and changed, by the record, besides what a sandbox allows.
func Needs(s schema.Server, access Sandbox, trace *box.Trace) (read, write []string) {
	return box.Paths(box.Beyond(Confined(s, access).Policy(), trace.Files()), Home())
}

// Home returns the home directory without symbolic links, "" if it is not known.
func Home() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

var _ command.Launcher = Keys{}
