package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// wanted is a question to the client.
type wanted struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// params returns the member params with a trailing comma, "" if absent.
func (w wanted) params() string {
	if w.Params == nil {
		return ""
	}
	return fmt.Sprintf(`"params":%s,`, w.Params)
}

// ask sends a question as a request, and returns its id and the channel of the answer.
func (c *call) ask(q wanted) (id json.RawMessage, answered chan message) {
	id, answered = c.peer.ask()
	c.send(fmt.Appendf(nil, `{"method":%s,%s"id":%s,"jsonrpc":"2.0"}`, quote(q.Method), q.params(), id))
	return id, answered
}

// askRounds asks all questions at once in each round, and returns the answers: of all rounds, or in
// the new protocol of the last one.
func (c *call) askRounds(questions []wanted, rounds int) (json.RawMessage, error) {
	if c.modern() {
		return c.inputRounds(questions, rounds)
	}
	var answers []string
	for range rounds {
		var waiting []chan message
		for _, q := range questions {
			_, answered := c.ask(q)
			waiting = append(waiting, answered)
		}
		for _, answered := range waiting {
			select {
			case m := <-answered:
				answers = append(answers, string(m.Result)+string(m.Error))
			case <-c.ctx.Done():
				return nil, errSilent
			}
		}
	}
	return textResult("["+strings.Join(answers, ",")+"]", ""), nil
}

// inputRounds asks in results. The request state has the number of the round.
func (c *call) inputRounds(questions []wanted, rounds int) (json.RawMessage, error) {
	var retry struct {
		Responses json.RawMessage `json:"inputResponses"`
		State     string          `json:"requestState"`
	}
	if err := decode(c.Params, &retry); err != nil {
		return nil, err
	}
	round := 0
	if retry.Responses != nil {
		if _, err := fmt.Sscanf(retry.State, "round %d", &round); err != nil {
			return nil, failure(-32602, "unknown requestState %q", retry.State)
		}
	}
	if round == rounds {
		return textResult(string(retry.Responses), ""), nil
	}
	var requests []string
	for i, q := range questions {
		requests = append(requests, fmt.Sprintf(`"ask %d":{%s"method":%s}`, i, q.params(), quote(q.Method)))
	}
	return fmt.Appendf(nil, `{"resultType":"input_required",%s,"requestState":"round %d","inputRequests":{%s}}`,
		grease, round+1, strings.Join(requests, ",")), nil
}
