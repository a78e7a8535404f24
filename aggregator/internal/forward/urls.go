package forward

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// urlsFirst converts the URL error of an upstream of the handshake era to the result that tells a
// host of the stateless era about it. It returns nil for other errors, or if the host cannot
// show URLs. No state is kept: the host repeats the request when the user has answered, and the
// upstream refuses it again if that is not enough. The answers, in params, are not for the
// upstream; if one of them is no, the error stays.
func urlsFirst(r *host.Request, params json.RawMessage, conn *upstream.Conn, err error) json.RawMessage {
	var rpc *wire.Error
	if r.Era != transports.Stateless || conn.Era() == transports.Stateless || !ask.MayNeedInput(r.Method) || !errors.As(err, &rpc) || rpc.Code != fleet.CodeURLFirst {
		return nil
	}
	for _, answer := range wire.Members(wire.Get(params, "inputResponses")) {
		if !wire.EqualString(wire.Get(answer, "action"), "accept") {
			return nil
		}
	}
	capabilities := wire.Get(r.Meta, transports.MetaCapabilities)
	asks, n := []byte(`{`), 0
	for elicitation := range wire.Elements(wire.Get(rpc.Data, "elicitations")) {
		asked := wire.Delete(elicitation, "elicitationId")
		if ask.Lacks(capabilities, "elicitation/create", asked) != "" {
			return nil
		}
		if n++; n > 1 {
			asks = append(asks, ',')
		}
		asks = fmt.Appendf(asks, `"%d":{"method":"elicitation/create","params":%s}`, n, asked)
	}
	if n == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":%s}`, append(asks, '}'))
}
