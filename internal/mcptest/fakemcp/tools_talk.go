package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// Tools that send messages to the client before they answer.

// progressToken returns the bytes of the client's progress token, nil without one.
func (c *call) progressToken() json.RawMessage {
	var params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(c.Params, &params)
	return params.Meta.ProgressToken
}

func (c *call) progress(step, of int) {
	if token := c.progressToken(); token != nil {
		c.send(notification("notifications/progress",
			fmt.Sprintf(`"message":"step %d","total":%d.0,"progress":%d.0,"progressToken":%s`, step, of, step, token)))
	}
}

// runProgress waits for the file until, if given, before it answers: clients may drop progress that
// arrives together with the answer.
func runProgress(c *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Steps int    `json:"steps"`
		Until string `json:"until"`
	}{Steps: 3}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	for n := range a.Steps {
		c.progress(n+1, a.Steps)
	}
	if a.Until != "" && !c.waitForFile(a.Until) {
		return nil, errSilent
	}
	return textResult(fmt.Sprintf("%d steps", a.Steps), ""), nil
}

func runLog(c *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Level  string          `json:"level"`
		Logger *string         `json:"logger"`
		Data   json.RawMessage `json:"data"`
		Times  int             `json:"times"`
	}{Level: "info", Data: json.RawMessage(`{` + grease + `}`), Times: 1}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	logger := ""
	if a.Logger != nil {
		logger = fmt.Sprintf(`"logger":%s,`, quote(*a.Logger))
	}
	for range c.logs(a.Times) {
		c.send(notification("notifications/message", fmt.Sprintf(`%s"data":%s,"level":%s`, logger, a.Data, quote(a.Level))))
	}
	return textResult("logged", ""), nil
}

// logs returns how many log messages are sent: none without a level in the new protocol.
func (c *call) logs(times int) int {
	if c.modern() && c.about.LogLevel == "" {
		return 0
	}
	return times
}

// runSleep answers after ms milliseconds, or when the file until exists; with neither it never
// answers. Its definition lacks until and count, because goldens contain its size.
func runSleep(c *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Ms    int    `json:"ms"`
		Until string `json:"until"`
		Count bool   `json:"count"` // say how many requests were cancelled
	}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	var over <-chan time.Time // never
	switch {
	case a.Until != "":
		if !c.waitForFile(a.Until) {
			return nil, errSilent
		}
		return textResult("slept", ""), nil
	case a.Ms > 0:
		over = time.After(time.Duration(a.Ms) * time.Millisecond)
	}
	select {
	case <-c.ctx.Done():
		return nil, errSilent
	case <-over:
		if a.Count {
			return textResult(fmt.Sprintf("slept, and %d requests were cancelled", c.peer.fake.cancelled.Load()), ""), nil
		}
		return textResult("slept", ""), nil
	}
}

// runAsk sends a request to the client and returns the answer, as text and as structured content. Its
// definition lacks also and rounds, because goldens contain its size.
func runAsk(c *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		wanted
		Also   []wanted `json:"also"`
		Rounds int      `json:"rounds"`
	}
	if err := decodeInto(args, &a, &a.Method); err != nil {
		return nil, err
	}
	if a.Also != nil || a.Rounds > 0 {
		return c.askRounds(append([]wanted{a.wanted}, a.Also...), max(a.Rounds, 1))
	}
	if c.modern() {
		return c.input(a.Method, a.Params)
	}
	id, answered := c.ask(a.wanted)
	select {
	case m := <-answered:
		return askResult(m), nil
	case <-c.ctx.Done():
		c.send(notification("notifications/cancelled", fmt.Sprintf(`"requestId":%s,"reason":"the call was cancelled"`, id)))
		return nil, errSilent
	}
}

// ask returns an id for a request, and the channel of its answer. The id is a string that tests
// recognise if a proxy passes it on.
func (p *peer) ask() (id json.RawMessage, answered chan message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asks++
	id = fmt.Appendf(nil, `"ask-%d"`, p.asks)
	answered = make(chan message, 1)
	p.asked[string(id)] = answered
	return id, answered
}

func askResult(m message) json.RawMessage {
	member, value := "result", m.Result
	if m.Error != nil {
		member, value = "error", m.Error
	}
	return textResult(string(value), fmt.Sprintf(`,"structuredContent":{%q:%s}`, member, value))
}

func runNotify(c *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Times  int             `json:"times"`
	}{Times: 1}
	if err := decodeInto(args, &a, &a.Method); err != nil {
		return nil, err
	}
	params := ""
	if a.Params != nil {
		params = fmt.Sprintf(`,"params":%s`, a.Params)
	}
	for range a.Times {
		c.peer.push(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s%s}`, quote(a.Method), params))
	}
	return textResult("notified", ""), nil
}

// adder returns a tool that adds an entry, given or built from name, and announces the change.
func adder(list, member string, build func(string) entry) func(*call, json.RawMessage) (json.RawMessage, error) {
	return func(c *call, args json.RawMessage) (json.RawMessage, error) {
		var a struct {
			Name  string          `json:"name"`
			Entry json.RawMessage `json:"entry"`
			Quiet bool            `json:"quiet"` // no notification
			Late  bool            `json:"late"`  // a notification behind the answer
		}
		if err := decode(args, &a); err != nil {
			return nil, err
		}
		e := build(a.Name)
		if a.Entry != nil {
			var err error
			if e, err = givenEntry(member, string(a.Entry)); err != nil {
				return nil, err
			}
		}
		c.peer.fake.offer.add(list, e)
		switch {
		case a.Late:
			c.late = list
		case !a.Quiet:
			c.peer.changed(list)
		}
		return textResult("added "+e.key, ""), nil
	}
}

func remover(list string) func(*call, json.RawMessage) (json.RawMessage, error) {
	return func(c *call, args json.RawMessage) (json.RawMessage, error) {
		name, err := nameOf(args)
		if err != nil {
			return nil, err
		}
		c.peer.fake.offer.remove(list, name)
		c.peer.changed(list)
		return textResult("removed "+name, ""), nil
	}
}

func runTouch(c *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ URI string }
	if err := decodeInto(args, &a, &a.URI); err != nil {
		return nil, err
	}
	return textResult(fmt.Sprintf("told %d", c.peer.updated(a.URI)), ""), nil
}
