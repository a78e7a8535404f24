package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/modules/sandbox/entry"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// warning returns a line about limits of a server's sandbox that this system cannot enforce, or "".
func warning(s schema.Server) string {
	access := entry.Of(s)
	if !access.On || s.Transport != schema.Stdio {
		return ""
	}
	return unlimited(entry.Confined(s, access).Policy().Missing(), access.BestEffort)
}

func unlimited(missing []string, bestEffort bool) string {
	switch {
	case len(missing) == 0:
		return ""
	case bestEffort:
		return "its sandbox is incomplete: this system cannot restrict " + strings.Join(missing, ", nor ")
	}
	return "it is not started here: " + (&sandbox.MissingError{Parts: missing}).Error()
}

// A toolCall is a call of a tool.
type toolCall struct {
	Tool      string
	Arguments json.RawMessage // an object
}

// allowed returns why the call may not be made, nil if it may: what refuses calls of hosts refuses
// this one too. Nobody is asked about it.
func (call *toolCall) allowed(s schema.Server, rules rule.Rules, tools []json.RawMessage) error {
	var annotations json.RawMessage
	for _, tool := range tools {
		if name, _ := wire.Text(wire.Get(tool, "name")); name == call.Tool {
			annotations = wire.Get(tool, "annotations")
		}
	}
	access := toolglob.AccessOf(annotations)
	if !toolglob.NewFilter(s.ToolFilter).Passes(call.Tool, access) {
		return hint.With(fmt.Errorf("%s: the tool_filter of %s leaves it out", call.Tool, s.Name), "do without it, or change the tool_filter")
	}
	verdict, err := rule.Judge(rules, &rule.Call{
		Server: s.Name, Tool: call.Tool, Class: toolglob.ClassOf(annotations), Host: "dynmcp", Surface: schema.ExposeDiscover, Arguments: call.Arguments,
	})
	if err != nil || verdict.Do == schema.PolicyAllow {
		return err
	}
	return hint.With(errors.New(verdict.Because(s.Name+"/"+call.Tool)), "do without it, or change that rule of the config")
}

// watch starts a server, lists what it has, makes calls, and stops it. trace records its accesses,
// also before an error.
func watch(ctx context.Context, s schema.Server, trace *box.Trace, version string, rules rule.Rules, calls ...toolCall) (err error) {
	defer func() { err = errors.Join(trace.Err(), err) }()
	c, err := upstream.Open(entry.Traced(s, trace), upstream.ConnOptions{
		Info: upstream.Info{Name: "dynmcp", Version: version}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Handshake(ctx, nil); err != nil {
		return err
	}
	var tools []json.RawMessage
	for method, key := range map[string]string{"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"} {
		var rpc *wire.Error
		listed, err := c.List(ctx, method, key, nil)
		if err != nil && !errors.As(err, &rpc) { // a JSON-RPC error: the server has no such list
			return err
		}
		if key == "tools" {
			tools = listed
		}
	}
	for _, call := range calls {
		if err := call.allowed(s, rules, tools); err != nil {
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

// learned holds the accesses of a server beyond those that every sandbox allows.
type learned struct {
	Box       entry.Sandbox // the narrowest sandbox that allows the accesses
	Addresses []string      // addresses connected to without the proxy, which need unlimited network
}

// learn returns the accesses that a learning trace has recorded.
func learn(s schema.Server, trace *box.Trace) learned {
	had := entry.Boxed(s)
	l := learned{Box: entry.Sandbox{On: true, Env: had.Env, BestEffort: had.BestEffort}, Addresses: direct(trace)}
	read, write := entry.Needs(s, l.Box, trace)
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

// explain starts a server that failed in its sandbox again, and returns which accesses were refused
// and the entry that allows them. It returns "" if none were, or if this system cannot trace.
func explain(ctx context.Context, s schema.Server) string {
	if !entry.Of(s).On || s.Transport != schema.Stdio {
		return ""
	}
	trace := &box.Trace{}
	_ = watch(ctx, s, trace, cli.Version, nil) // the server fails again
	return refused(s, trace)
}

// refused describes the refused accesses of a server, and the sandbox that allows them.
func refused(s schema.Server, trace *box.Trace) string {
	access := entry.Of(s)
	read, write := entry.Needs(s, access, trace)
	read, write = short(read), short(write)
	hosts := trace.Denied()
	all := slices.Concat(read, write, hosts)
	if around := direct(trace); len(around) > 0 && len(access.Network.Hosts) > 0 {
		all = append(all, strings.Join(around, ", ")+" (it connects by itself, not by the proxy, for which the network has to be all)")
	}
	if trace.Socket.Load() {
		all = append(all, `the network (its network is "none"; dynmcp sandbox --learn says which hosts it needs)`)
		access.Network.None = false
	}
	if len(all) == 0 {
		return ""
	}
	if more := len(all) - maxSaid; more > 0 {
		all = append(all[:maxSaid:maxSaid], fmt.Sprintf("%d more", more))
	}
	access.Read, access.Write, access.Network.Hosts = slices.Concat(access.Read, read), slices.Concat(access.Write, write), slices.Concat(access.Network.Hosts, hosts)
	return "its sandbox refused it " + strings.Join(all, ", ") + "; what it needs of these goes into its entry, all of it is \"sandbox\": " + schema.ValueJSON(access)
}

// maxSaid limits the accesses that refused lists.
const maxSaid = 10

// direct returns the addresses that a server connected to without the proxy. It leaves out port 53,
// because the proxy resolves names, and port 0, which libraries use only to find a route.
func direct(trace *box.Trace) []string {
	return slices.DeleteFunc(trace.Addresses(), func(address string) bool {
		at, err := netip.ParseAddrPort(address)
		return err != nil || at.Port() == 0 || at.Port() == 53
	})
}

// short replaces the home directory in paths with ~.
func short(paths []string) (all []string) {
	home := entry.Home()
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
			path = filepath.Join("~", rest)
		}
		all = append(all, path)
	}
	return all
}
