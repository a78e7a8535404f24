package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

const (
	// handshakeVersion is the newest protocol version that has the initialize
	// handshake.
	handshakeVersion = "2025-11-25"
	// methodDiscover is the first request of the stateless era.
	methodDiscover = "server/discover"
	// discoverTimeout is how long an upstream may take to answer methodDiscover. Most that
	// support only the handshake answer with an error at once.
	discoverTimeout = 3 * time.Second
)

// ErrProbe means that an upstream ended when it was asked for its era. It may work if it is
// opened again with ConnOptions.HandshakeOnly.
var ErrProbe = errors.New("it ended at server/discover")

// Handshake determines the era of the upstream and introduces dynmcp, declaring capabilities
// (raw JSON, may be nil). An upstream that supports both eras is used in that of the host. The
// error wraps ErrProbe if the upstream ended at server/discover.
func (c *Conn) Handshake(ctx context.Context, capabilities json.RawMessage) error {
	if capabilities == nil {
		capabilities = json.RawMessage(`{}`)
	}
	capabilities = withExtension(capabilities, c.server)
	c.declared = capabilities
	if l, ok := c.link.(*sseLink); ok {
		if err := l.connect(ctx); err != nil {
			return err
		}
		return c.initialize(ctx, capabilities, handshakeVersion)
	}
	host, known := c.opts.Host()
	c.opts.Info.Name = cmp.Or(host.Name, c.opts.Info.Name)
	var refused error
	if c.opts.HandshakeOnly || known && host.Era == transports.Handshake {
		refused = c.initialize(ctx, capabilities, handshakeVersion)
		if !mayBeStateless(refused, c.Err() == nil) || c.opts.HandshakeOnly && namedVersion(refused, isStateless) == "" {
			return refused
		}
	}
	stateless, version, err := c.discover(ctx)
	switch {
	case err != nil:
		return err
	case stateless:
		c.subscriptions.start(ctx)
		return nil
	case refused != nil:
		return refused
	}
	return c.initialize(ctx, capabilities, version)
}

// namedVersion returns the newest version that fits among those that we support and that err
// names, if err refuses a version (MCP 2026-07-28, "Versioning"). Otherwise it returns "".
func namedVersion(err error, fits func(version string) bool) (newest string) {
	var rpc *wire.Error
	if !errors.As(err, &rpc) || rpc.Code != transports.CodeUnsupportedVersion {
		return ""
	}
	for named := range wire.Elements(wire.Get(rpc.Data, "supported")) {
		version, _ := wire.Text(named)
		if version > newest && slices.Contains(mcp.SupportedProtocolVersions(), version) && fits(version) {
			newest = version
		}
	}
	return newest
}

func isStateless(version string) bool { return version >= transports.StatelessVersion }

func isHandshake(version string) bool { return version < transports.StatelessVersion }

// mayBeStateless reports whether err is how an upstream of the stateless era may refuse
// initialize: with a JSON-RPC error, or with an HTTP status while the connection lives.
func mayBeStateless(err error, lives bool) bool {
	var rpc *wire.Error
	var failure *transports.Failure
	return errors.As(err, &rpc) ||
		errors.As(err, &failure) && failure.Code == transports.CodeUnreachable && lives
}

// initialize performs the handshake of the versions up to 2025-11-25 (their "Lifecycle"). It
// proposes version first. If the upstream refuses and names another one that we support, it
// proposes that.
func (c *Conn) initialize(ctx context.Context, capabilities json.RawMessage, version string) error {
	params, err := json.Marshal(struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      Info            `json:"clientInfo"`
	}{version, capabilities, c.opts.Info})
	if err != nil {
		return err
	}
	result, err := c.Call(ctx, "initialize", params)
	if other := namedVersion(err, isHandshake); other != "" && other != version {
		result, err = c.Call(ctx, "initialize", wire.Set(params, "protocolVersion", wire.Quote(other)))
	}
	if err != nil {
		return c.StartFailure("initialize", err)
	}
	if c.info, err = readInitializeResult(result); err != nil {
		return c.StartFailure("initialize", err)
	}
	c.agreed.Store(&c.info.ProtocolVersion)
	// This may be the first message that fails on a broken connection.
	initialized := wire.Notification(wire.Quote("notifications/initialized"))
	c.opts.Tap.Show(c.peer, false, initialized...)
	if err := c.link.sendInitialized(initialized...); err != nil {
		return c.StartFailure("notifications/initialized", err)
	}
	return nil
}

func readInitializeResult(result json.RawMessage) (info ServerInfo, err error) {
	if !wire.IsObject(result) {
		return info, fmt.Errorf("the answer is %s, not an object", wire.TypeName(result))
	}
	version, _ := wire.Text(wire.Get(result, "protocolVersion"))
	if !slices.Contains(mcp.SupportedProtocolVersions(), version) {
		return info, fmt.Errorf("it chose protocol version %q, which dynmcp does not support", version)
	}
	instructions, _ := wire.Text(wire.Get(result, "instructions"))
	return ServerInfo{
		ProtocolVersion: version,
		Capabilities:    wire.Get(result, "capabilities"),
		Implementation:  wire.Get(result, "serverInfo"),
		Instructions:    instructions,
		Extra:           wire.Delete(result, "protocolVersion", "capabilities", "serverInfo", "instructions"),
	}, nil
}

// discover asks for the protocol versions of the upstream and reports whether the stateless
// era is among them (MCP 2026-07-28, "Discovery"). Requests declare only the capabilities that
// their host does: in this era an upstream cannot send requests to a host of the handshake
// era. version is the one to propose to an upstream that is not stateless.
func (c *Conn) discover(ctx context.Context) (stateless bool, version string, err error) {
	info, err := json.Marshal(c.opts.Info)
	if err != nil {
		return false, "", err
	}
	c.eraMeta = eraMeta{
		{transports.MetaVersion, `"` + transports.StatelessVersion + `"`},
		{transports.MetaCapabilities, string(withExtension([]byte(`{}`), c.server))},
		{transports.MetaClientInfo, string(info)},
	}
	waiting, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	if c.onReplica { // the other replica answers only when the server has started
		waiting = ctx
	}
	result, err := c.Call(waiting, methodDiscover, c.eraMeta.addTo(wire.Object{}).Text)
	if namedVersion(err, isStateless) != "" { // the version of the request itself
		result, err = c.Call(waiting, methodDiscover, c.eraMeta.addTo(wire.Object{}).Text)
	}
	var failure *transports.Failure
	switch {
	case err == nil:
		info, stateless := readDiscoverResult(result)
		if stateless {
			c.info = info
			c.agreed.Store(&c.info.ProtocolVersion)
			c.stateless.Store(true)
		}
		return stateless, handshakeVersion, nil
	case ctx.Err() != nil:
		return false, "", c.StartFailure(methodDiscover, ctx.Err())
	case c.Err() != nil && c.onReplica: // the replica knows server/discover, so it did not end because of that
		return false, "", c.StartFailure(methodDiscover, err)
	case c.Err() != nil:
		return false, "", fmt.Errorf("%w: %w", ErrProbe, err)
	case errors.As(err, &failure) && slices.Contains([]int64{transports.CodeAuthRequired, transports.CodeNotPlaced, transports.CodeRateLimited, transports.CodeNoResources}, failure.Code):
		return false, "", failure
	}
	c.log.Debug("no stateless protocol", "err", err)
	return false, cmp.Or(namedVersion(err, isHandshake), handshakeVersion), nil
}

// readDiscoverResult reports whether the upstream supports the stateless era.
func readDiscoverResult(result json.RawMessage) (info ServerInfo, stateless bool) {
	for version := range wire.Elements(wire.Get(result, "supportedVersions")) {
		stateless = stateless || string(version) == `"`+transports.StatelessVersion+`"`
	}
	if !stateless {
		return info, false
	}
	instructions, _ := wire.Text(wire.Get(result, "instructions"))
	return ServerInfo{
		ProtocolVersion: transports.StatelessVersion,
		Capabilities:    wire.Get(result, "capabilities"),
		Implementation:  wire.Get(wire.Get(result, "_meta"), mcp.MetaKeyServerInfo),
		Instructions:    instructions,
		// Without members of the era, or of this one result.
		Extra: wire.Delete(result, "supportedVersions", "capabilities", "instructions", "_meta", "resultType", "ttlMs", "cacheScope"),
	}, true
}

// An eraMeta is the members of _meta in every request of the stateless era.
type eraMeta [][2]string

// addTo returns params with those members. It replaces the host's version, and keeps its other
// members.
func (m eraMeta) addTo(params wire.Object) wire.Object {
	if len(params.Text) == 0 {
		params.Text = json.RawMessage(`{}`)
	}
	meta := params.Get("_meta")
	if !wire.IsObject(meta) {
		meta = json.RawMessage(`{}`)
	}
	for _, member := range m {
		if member[0] == transports.MetaVersion || wire.Get(meta, member[0]) == nil {
			meta = wire.Set(meta, member[0], []byte(member[1]))
		}
	}
	return params.Set("_meta", meta)
}

// StartFailure returns the failure of an upstream that could not be started because a step
// failed with err. The outcome is not_sent.
func (c *Conn) StartFailure(step string, err error) error {
	child, _ := c.link.(*childLink)
	f, ok := errors.AsType[*transports.Failure](err)
	switch {
	case ok:
		f.Outcome, f.Cause, f.Hint = transports.NotSent, c.redacted(f.Cause), c.redact.String(f.Hint)
		if f.Code == transports.CodeExited {
			f.Code = transports.CodeStartFailed
		}
	case errors.Is(err, guard.ErrResources):
		return c.noResources(fmt.Errorf("%s: %w", step, err))
	case errors.Is(err, context.DeadlineExceeded):
		f = c.newFailure(transports.CodeTimeout, transports.NotSent, fmt.Errorf("%s: no answer within its load_timeout of %v", step, c.server.LoadTimeout))
		if child != nil && child.installing.Load() {
			f.Hint = packages.UnfinishedHint(command.Environment(c.server.Env, c.server.InheritEnv))
		}
	default:
		f = c.newFailure(transports.CodeStartFailed, transports.NotSent, fmt.Errorf("%s: %w", step, err))
	}
	if stray := c.stray.Load(); stray != nil && child != nil && c.agreed.Load() == nil && f.Code != transports.CodeNoResources {
		f.Code = transports.CodeStartFailed
		f.Cause = fmt.Errorf("it does not speak MCP: its first line was %q (%w)", *stray, f.Cause)
	}
	return f
}
