package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A result of the stateless era may ask for input: the host is to repeat its request with the
// answers (MCP 2026-07-28, "Multi Round-Trip Requests"). A host of the handshake era does not
// know that. It gets the questions as requests, and the request is repeated from here.

// maxRounds is how many times a request is repeated with answers.
const maxRounds = 10

// emptyRoundPause is the pause before repeating a request that was answered without a question:
// that is how a server reports that it is busy.
const emptyRoundPause = time.Second

// A hostQuestion is a question sent to a host as a request.
type hostQuestion struct {
	key    json.RawMessage // of the answer, a string with its quotes
	method string
	answer func() (json.RawMessage, error)
}

// nextRound asks a host of the handshake era the questions in the result of its request, and repeats
// the request with the answers. It is called where the result is read: the questions are sent in
// the order of the wire, without waiting.
func (c *Call) nextRound(r *host.Request, result json.RawMessage) {
	fail := func(err error) {
		c.Env.Fail(c.Session, r, &transports.Failure{Upstream: c.Route.Upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.Unknown, Cause: err,
			Hint: "what it did before it asked may have taken effect"}, c.Route.AsText)
	}
	if c.Route.rounds == maxRounds {
		fail(fmt.Errorf("it asks the host again after %d rounds of questions", maxRounds))
		return
	}
	result = bytes.Clone(result) // the line is reused
	requests := wire.Get(result, "inputRequests")
	capabilities := c.Session.Declaration().Capabilities
	for _, request := range wire.Members(requests) {
		method, _ := wire.Text(wire.Get(request, "method"))
		if lacking := ask.Lacks(capabilities, method, wire.Get(request, "params")); lacking != "" {
			fail(fmt.Errorf("it asks the host for %s: %s", method, lacking))
			return
		}
	}
	ctx, cancel := c.Env.Work.ContextOf(r)
	var questions []hostQuestion
	for key, request := range wire.Members(requests) {
		method, _ := wire.Text(wire.Get(request, "method"))
		params := c.Session.ForHandshake(method, wire.Get(request, "params"))
		questions = append(questions, hostQuestion{key, method, c.Server.RequestHost(ctx, c.Session, r.Peer, method, params)})
	}
	again := c.Route
	again.rounds++
	again.retry = false
	c.Env.Work.Answer(r, func() {
		defer cancel()
		responses, err := collect(ctx, cancel, questions)
		if err != nil {
			fail(err)
			return
		}
		again.Params = wire.Delete(again.Params, "requestState", "inputResponses")
		if len(questions) > 0 {
			again.Params = wire.Set(again.Params, "inputResponses", responses)
		}
		if state := wire.Get(result, "requestState"); state != nil {
			again.Params = wire.Set(again.Params, "requestState", state)
		}
		c.Env.Dispatch(c.Session, r, again)
	})
}

// collect waits for the host's answers to all questions and returns them under the upstream's keys.
// If the host refuses one, or ctx ends, the others are withdrawn: a result has no place for an
// error.
func collect(ctx context.Context, cancel context.CancelFunc, questions []hostQuestion) (responses json.RawMessage, err error) {
	if len(questions) == 0 {
		select {
		case <-time.After(emptyRoundPause):
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	var members [][]byte
	for _, q := range questions {
		answer, failed := q.answer()
		if failed != nil && err == nil {
			cancel()
			err = fmt.Errorf("the host did not answer its %s: %w", q.method, failed)
			if rpc, ok := errors.AsType[*wire.Error](failed); ok {
				err = fmt.Errorf("the host refused to answer its %s: %s (code %d)", q.method, rpc.Message, rpc.Code)
			}
		}
		members = append(members, fmt.Appendf(nil, "%s:%s", q.key, answer))
	}
	return fmt.Appendf(nil, "{%s}", bytes.Join(members, []byte(","))), err
}

// urlElicitations converts the URL error of an upstream of the handshake era to the result that tells a
// host of the stateless era about it. It returns nil for other errors, or if the host cannot
// show URLs. No state is kept: the host repeats the request when the user has answered, and the
// upstream refuses it again if that is not enough. The answers, in params, are not for the
// upstream; if one of them is no, the error stays.
func urlElicitations(r *host.Request, params json.RawMessage, conn *upstream.Conn, err error) json.RawMessage {
	var rpc *wire.Error
	if r.Era != transports.Stateless || conn.Era() == transports.Stateless || !ask.MayNeedInput(r.Method) || !errors.As(err, &rpc) || rpc.Code != fleet.CodeURLElicitation {
		return nil
	}
	for _, answer := range wire.Members(wire.Get(params, "inputResponses")) {
		if !wire.EqualString(wire.Get(answer, "action"), "accept") {
			return nil
		}
	}
	capabilities := wire.Get(r.Meta, transports.MetaCapabilities)
	var asks [][]byte
	for elicitation := range wire.Elements(wire.Get(rpc.Data, "elicitations")) {
		asked := wire.Delete(elicitation, "elicitationId")
		if ask.Lacks(capabilities, "elicitation/create", asked) != "" {
			return nil
		}
		asks = append(asks, fmt.Appendf(nil, `"%d":{"method":"elicitation/create","params":%s}`, len(asks)+1, asked))
	}
	if asks == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{%s}}`, bytes.Join(asks, []byte(",")))
}
