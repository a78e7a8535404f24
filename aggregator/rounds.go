package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A result of the stateless era may ask for input: the host is to send its request
// again, with the answers (MCP 2026-07-28, "Multi Round-Trip Requests"). A host of
// the handshake era does not know that. It gets the questions as requests, and the
// request is sent again from here.

// maxRounds is how often a request is sent again with answers.
const maxRounds = 10

// emptyRoundPause comes before a request is sent again that was answered without a
// question: that is how a server says that it is busy.
const emptyRoundPause = time.Second

// A hostQuestion is one that a host has as a request.
type hostQuestion struct {
	key    json.RawMessage // under which the upstream wants the answer, a string with its quotes
	method string
	answer func() (json.RawMessage, error)
}

// nextRound asks a host of the handshake era what the result of its request asks,
// and sends the request again with the answers. It is called where the result is
// read: the questions are sent in the order of the wire, and nothing is waited for.
func (c *forwardedCall) nextRound(r *host.Request, result json.RawMessage) {
	a := c.agg
	fail := func(err error) {
		c.session.fail(r, &transports.Failure{Upstream: c.route.upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.Unknown, Cause: err,
			Hint: "what it did before it asked may have taken effect"}, c.route.asText)
	}
	if c.route.rounds == maxRounds {
		fail(fmt.Errorf("it asks the host again after %d rounds of questions", maxRounds))
		return
	}
	result = bytes.Clone(result) // the line is reused
	requests := wire.Get(result, "inputRequests")
	capabilities := c.session.declaration().capabilities
	for _, request := range wire.Members(requests) {
		method, _ := wire.Text(wire.Get(request, "method"))
		if lacking := ask.Lacks(capabilities, method, wire.Get(request, "params")); lacking != "" {
			fail(fmt.Errorf("it asks the host for %s: %s", method, lacking))
			return
		}
	}
	ctx, cancel := a.work.ContextOf(r)
	var questions []hostQuestion
	for key, request := range wire.Members(requests) {
		method, _ := wire.Text(wire.Get(request, "method"))
		params := c.session.forHandshake(method, wire.Get(request, "params"))
		questions = append(questions, hostQuestion{key, method, c.peer.requestHost(ctx, c.session, r.Peer, method, params)})
	}
	again := c.route
	again.rounds++
	again.retry = false
	a.work.Answer(r, func() {
		defer cancel()
		responses, err := collect(ctx, cancel, questions)
		if err != nil {
			fail(err)
			return
		}
		again.params = wire.Delete(again.params, "requestState", "inputResponses")
		if len(questions) > 0 {
			again.params = wire.Set(again.params, "inputResponses", responses)
		}
		if state := wire.Get(result, "requestState"); state != nil {
			again.params = wire.Set(again.params, "requestState", state)
		}
		c.session.dispatch(r, again)
	})
}

// collect waits for the host's answers to all questions and returns them under the
// upstream's keys. Once the host has refused to answer one, or ctx has ended, the
// others are withdrawn: a result has no place for an error.
func collect(ctx context.Context, cancel context.CancelFunc, questions []hostQuestion) (responses json.RawMessage, err error) {
	if len(questions) == 0 {
		select {
		case <-time.After(emptyRoundPause):
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	responses = json.RawMessage(`{`)
	for i, q := range questions {
		answer, failed := q.answer()
		if failed != nil && err == nil {
			cancel()
			err = fmt.Errorf("the host did not answer its %s: %w", q.method, failed)
			if rpc, ok := errors.AsType[*wire.Error](failed); ok {
				err = fmt.Errorf("the host refused to answer its %s: %s (code %d)", q.method, rpc.Message, rpc.Code)
			}
		}
		if i > 0 {
			responses = append(responses, ',')
		}
		responses = append(append(append(responses, q.key...), ':'), answer...)
	}
	return append(responses, '}'), err
}

// forHandshake returns the params of a question as hosts of the handshake era know
// them: there a question that is asked by way of a URL has an id (MCP 2025-11-25,
// "URL Mode Elicitation Requests").
func (s *session) forHandshake(method string, params json.RawMessage) json.RawMessage {
	if method != "elicitation/create" || !wire.EqualString(wire.Get(params, "mode"), "url") || wire.Get(params, "elicitationId") != nil {
		return params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	return wire.Set(params, "elicitationId", fmt.Appendf(nil, `"dynmcp-%d"`, s.lastToken))
}
