package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// HostEra returns the era that another replica uses for a server, from the first line of the stream,
// and the stream including that line.
func HostEra(ctx context.Context, stream io.ReadWriteCloser) (io.ReadWriteCloser, transports.Era, error) {
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	in := bufio.NewReader(stream)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, 0, cmp.Or(ctx.Err(), err)
	}
	era := transports.Handshake
	if wire.EqualString(wire.Get(line, "method"), "server/discover") {
		era = transports.Stateless
	}
	return struct {
		io.Reader
		io.WriteCloser
	}{io.MultiReader(bytes.NewReader(line), in), stream}, era, nil
}

// AcquireHere is Acquire for an upstream that must be this replica's own: it retires a link to another
// replica, which ran the server before. The error is upstream.ErrMoved when the server may not be
// started here any more.
func AcquireHere(ctx context.Context, u *lazy.Upstream, here Placement) (*upstream.Conn, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-here.Moving:
			cancel(upstream.ErrMoved)
		case <-here.Lost:
			cancel(upstream.ErrMoved)
		case <-ctx.Done():
		}
	})
	for range MaxMoves {
		conn, release, err := u.Acquire(ctx)
		if err != nil && context.Cause(ctx) == upstream.ErrMoved {
			return nil, nil, upstream.ErrMoved
		}
		if err != nil || !conn.Remote() {
			return conn, release, err
		}
		u.Retire(conn)
		release()
	}
	return nil, nil, upstream.ErrMoved
}

// Unknown is the failure if the replica that is to run a server does not know it.
func Unknown(server string) error {
	return &transports.Failure{Upstream: server, Code: transports.CodeNotPlaced, Outcome: transports.NotSent, Cause: errors.New("the replica that should run it does not know it: its config differs")}
}

// ServerFailure returns the failure of a server that cannot be served, nil if it is not at fault.
func ServerFailure(server string, err error) json.RawMessage {
	var failure *transports.Failure
	switch {
	case errors.Is(err, upstream.ErrMoved), errors.Is(err, lazy.ErrClosed), errors.Is(err, context.Canceled):
		return nil
	case !errors.As(err, &failure):
		failure = &transports.Failure{Upstream: server, Code: transports.CodeStartFailed, Outcome: transports.NotSent, Cause: err}
	case failure.Code == transports.CodeShuttingDown:
		return nil
	}
	return failure.Record()
}

// EndMessage returns the message that ends the connection to a server.
func EndMessage(end transports.ReplicaEnd) [][]byte {
	said, _ := json.Marshal(end) // numbers and JSON always marshal
	return message(transports.MethodReplicaEnded, said)
}

// RetiredMessage returns the message that the connection takes no more calls.
func RetiredMessage() [][]byte { return message(transports.MethodReplicaRetired, []byte(`{}`)) }

// message returns a notification of dynmcp's own, distinct from those of the server.
func message(method string, said json.RawMessage) [][]byte {
	message := wire.Notification(wire.Quote(method))
	message[len(message)-1] = fmt.Appendf(nil, `,%q:%s}`, transports.MemberReplica, said)
	return message
}

// Introduction returns a server's description as the answer to initialize or to server/discover, in
// the era of that request.
func Introduction(info *upstream.ServerInfo, era transports.Era) json.RawMessage {
	said := bytes.Clone(info.Extra)
	if !wire.IsObject(said) {
		said = []byte(`{}`)
	}
	set := func(member string, value json.RawMessage) {
		if value != nil {
			said = wire.Set(said, member, value)
		}
	}
	set("capabilities", info.Capabilities)
	if info.Instructions != "" {
		set("instructions", wire.Quote(info.Instructions))
	}
	if era == transports.Handshake {
		set("protocolVersion", wire.Quote(info.ProtocolVersion))
		set("serverInfo", info.Implementation)
		return said
	}
	set("supportedVersions", fmt.Appendf(nil, `[%q]`, info.ProtocolVersion))
	if info.Implementation != nil {
		said = transports.SetMeta(said, mcp.MetaKeyServerInfo, info.Implementation)
	}
	return said
}

// pagePrefix begins the cursors of Page, pageBytes is the minimal size of its pages.
const (
	pagePrefix = "dynmcp-"
	pageBytes  = 1 << 20
)

// PageAt returns the start of the requested page; ok is false if the page is the server's.
func PageAt(params json.RawMessage) (from int, ok bool) {
	cursor := wire.Get(params, "cursor")
	if cursor == nil {
		return 0, true
	}
	text, _ := wire.Text(cursor)
	number, ok := strings.CutPrefix(text, pagePrefix)
	from, err := strconv.Atoi(number)
	return from, ok && err == nil && from >= 0
}

// Page returns a page of a list in the server's format.
func Page(key string, entries []json.RawMessage, from int) json.RawMessage {
	out := fmt.Appendf(nil, `{%q:[`, key)
	at := min(from, len(entries))
	for ; at < len(entries) && len(out) < pageBytes; at++ {
		if at > from {
			out = append(out, ',')
		}
		out = append(out, entries[at]...)
	}
	out = append(out, ']')
	if at < len(entries) {
		out = fmt.Appendf(out, `,"nextCursor":"%s%d"`, pagePrefix, at)
	}
	return append(out, '}')
}
