// Package confine tells people what the sandbox of a server allows, what it refused, and what
// it would have to allow.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Missing says what of a server's sandbox this system cannot limit, nil without a sandbox.
func Missing(s schema.Server) []string {
	if !s.Sandbox.On || s.Transport != schema.Stdio {
		return nil
	}
	return command.Confined(s).Policy().Missing()
}

// Warning says in a line what of a server's sandbox this system cannot limit, "" where it can
// limit all.
func Warning(s schema.Server) string { return warning(Missing(s), s.Sandbox.BestEffort) }

func warning(missing []string, bestEffort bool) string {
	switch {
	case len(missing) == 0:
		return ""
	case bestEffort:
		return "its sandbox is not whole: this system cannot limit " + strings.Join(missing, ", nor ")
	}
	return "it is not started here: " + (&sandbox.MissingError{Parts: missing}).Error()
}

// boxed returns the sandbox of a server, or else that of "sandbox": true.
func boxed(s schema.Server) schema.Sandbox {
	if !s.Sandbox.On {
		return schema.Boxed(true)
	}
	return s.Sandbox
}

// A Call is one of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // an object
}

// Watch starts a server, lists what it has, makes calls, and stops it. What it does meanwhile
// is noted, also where the error says that it failed.
func Watch(ctx context.Context, s schema.Server, trace *sandbox.Trace, version string, calls ...Call) error {
	s.Sandbox = boxed(s)
	err := watch(ctx, s, trace, version, calls)
	return errors.Join(trace.Err(), err)
}

func watch(ctx context.Context, s schema.Server, trace *sandbox.Trace, version string, calls []Call) error {
	c, err := upstream.Open(s, upstream.Options{
		Info: upstream.Info{Name: "dynmcp", Version: version}, Logger: slog.New(slog.DiscardHandler), Trace: trace,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Handshake(ctx, nil); err != nil {
		return err
	}
	for method, key := range map[string]string{"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"} {
		var rpc *wire.Error
		if _, err := c.List(ctx, method, key); err != nil && !errors.As(err, &rpc) { // one that it does not have
			return err
		}
	}
	for _, call := range calls {
		params := fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, wire.Quote(call.Tool), call.Arguments)
		if _, err := c.Call(ctx, "tools/call", params); err != nil {
			return fmt.Errorf("%s: %w", call.Tool, err)
		}
	}
	return nil
}

// Learned is what a server did beyond what every sandbox allows.
type Learned struct {
	Box       schema.Sandbox // the narrowest that allows it
	Addresses []string       // that it connected to around the proxy, for which the network has to be all
}

// Learn returns what a server did, that was watched with a trace that learns.
func Learn(s schema.Server, trace *sandbox.Trace) Learned {
	had := boxed(s)
	s.Sandbox = schema.Sandbox{On: true, Env: had.Env, BestEffort: had.BestEffort}
	l := Learned{Box: s.Sandbox, Addresses: direct(trace)}
	read, write := sandbox.Paths(command.Confined(s).Policy().Beyond(trace.Files()), home())
	l.Box.Read, l.Box.Write = short(read), short(write)
	switch hosts := trace.Hosts(); {
	case len(l.Addresses) > 0:
	case len(hosts) == 0:
		l.Box.Network.None = true
	default:
		l.Box.Network.Hosts = hosts
	}
	return l
}

// Explain starts a server once more that failed in its sandbox, and says which files it was
// refused, and the lists of its entry that allow them; "" is that there were none, or that
// this system cannot tell.
func Explain(ctx context.Context, s schema.Server) string {
	if !s.Sandbox.On || s.Transport != schema.Stdio {
		return ""
	}
	trace := &sandbox.Trace{}
	_ = Watch(ctx, s, trace, cli.Version) // it fails again
	return refused(s, trace)
}

// refused says what a sandbox refused a server, and what its entry is to be.
func refused(s schema.Server, trace *sandbox.Trace) string {
	read, write := sandbox.Paths(command.Confined(s).Policy().Beyond(trace.Files()), home())
	read, write = short(read), short(write)
	hosts := trace.Refused()
	all := slices.Concat(read, write, hosts)
	if around := direct(trace); len(around) > 0 && len(s.Sandbox.Network.Hosts) > 0 {
		all = append(all, strings.Join(around, ", ")+" (it connects by itself, not by the proxy, for which the network has to be all)")
	}
	box := s.Sandbox
	if trace.Socket.Load() {
		all = append(all, `the network (its network is "none"; dynmcp sandbox --learn says which hosts it needs)`)
		box.Network.None = false
	}
	if len(all) == 0 {
		return ""
	}
	if more := len(all) - maxSaid; more > 0 {
		all = append(all[:maxSaid:maxSaid], fmt.Sprintf("%d more", more))
	}
	box.Read, box.Write, box.Network.Hosts = slices.Concat(box.Read, read), slices.Concat(box.Write, write), slices.Concat(box.Network.Hosts, hosts)
	return "its sandbox refused it " + strings.Join(all, ", ") + "; what it needs of these goes into its entry, all of it is \"sandbox\": " + schema.SandboxJSON(box)
}

// maxSaid is how many paths are named in a sentence.
const maxSaid = 10

// direct returns the addresses that a server connected to, but for its resolver's, whose names
// the proxy resolves, and for those that a library only asks a route for.
func direct(trace *sandbox.Trace) []string {
	return slices.DeleteFunc(trace.Addresses(), func(address string) bool {
		at, err := netip.ParseAddrPort(address)
		return err != nil || at.Port() == 0 || at.Port() == 53
	})
}

func home() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// short writes paths below the home directory with ~.
func short(paths []string) (all []string) {
	home := home()
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
			path = filepath.Join("~", rest)
		}
		all = append(all, path)
	}
	return all
}
