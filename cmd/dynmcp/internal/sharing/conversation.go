package sharing

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A conversation is what a relay knows of what a host and the runs that serve it have
// said: enough to answer the host where a run cannot, and to tell the next run what the
// last one was told. One goroutine sends and one receives.
type conversation struct {
	mu      sync.Mutex
	waiting map[string]request // of the host, by their ids as they were sent
	last    int                // request, in the order in which they came
	asked   map[string][]byte  // questions of the run: its ids, by those that the host knows
	runs    int                // that have ended

	// What a run is told of the host.
	hello       wire.Message            // the initialize request
	welcome     []byte                  // its result, nil before it has one
	initialized bool                    // the host has said so
	level       wire.Message            // the last logging/setLevel request
	subscribed  map[string]wire.Message // resources/subscribe requests, by their URIs

	// What we have told a run, until it has answered.
	greeting    string            // our id of the initialize request
	ours        map[string][]byte // our ids, with the URI that each subscribes to, nil for none
	relistening map[string]bool   // ids of subscriptions/listen requests that were sent again
}

// A request is one that waits for its answer.
type request struct {
	number  int
	message wire.Message // of one that may be sent again, with its params; else empty
	acked   bool         // it is a subscription that has begun
}

// repeatable are the requests that may be sent again although a run may have seen them:
// they run nothing, and what they change is on that run alone.
var repeatable = map[string]bool{
	"initialize": true, "server/discover": true, "ping": true, "logging/setLevel": true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"resources/subscribe": true, "resources/unsubscribe": true, "subscriptions/listen": true,
}

func newConversation() *conversation {
	return &conversation{
		waiting: map[string]request{}, asked: map[string][]byte{}, subscribed: map[string]wire.Message{},
		ours: map[string][]byte{}, relistening: map[string]bool{},
	}
}

// send sends lines of the host, and returns those of which the run has not all.
func (c *conversation) send(to io.Writer, lines []byte) (unsent []byte) {
	type piece struct {
		message wire.Message
		from    int // in lines
		end     int // in text
	}
	text, same := lines, true // until a line is to be sent otherwise
	var pieces []piece
	for from := 0; from < len(lines); {
		line := lines[from:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		m, _ := wire.Parse(bytes.TrimSpace(line)) // what is broken the run refuses
		shown := c.sending(line, m)
		if same && !bytes.Equal(shown, line) {
			text, same = bytes.Clone(lines[:from]), false
		}
		from += len(line)
		end := from
		if !same {
			text = append(text, shown...)
			end = len(text)
		}
		pieces = append(pieces, piece{m, from - len(line), end})
	}
	n, err := to.Write(text)
	for _, p := range pieces {
		if err != nil && n+1 < p.end { // a line without its end may be read
			return lines[p.from:]
		}
		c.sent(p.message)
	}
	return nil
}

// sending notes a line before it is sent, and returns it as the run is to see it.
func (c *conversation) sending(line []byte, m wire.Message) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] == '[' {
		for element := range wire.Elements(trimmed) {
			if m, err := wire.Parse(element); err == nil && m.IsRequest() {
				c.noteLocked(m, false)
			}
		}
		return line
	}
	switch {
	case m.IsRequest():
		c.noteLocked(m, repeatable[m.Method])
	case m.Method == "notifications/cancelled":
		delete(c.waiting, string(wire.Get(m.Params, "requestId")))
	case m.Method == "" && m.ID != nil:
		its, known := c.asked[string(m.ID)]
		delete(c.asked, string(m.ID))
		switch {
		case !known: // it was asked by a run that has ended, or takes its question back
			return nil
		case !bytes.Equal(its, m.ID):
			return append(wire.Set(bytes.TrimSpace(line), "id", its), '\n')
		}
	}
	return line
}

func (c *conversation) noteLocked(m wire.Message, again bool) {
	r, known := c.waiting[string(m.ID)]
	if !known {
		c.last++
		r.number = c.last
	}
	if again {
		r.message = m.Own()
	}
	c.waiting[string(m.ID)] = r
}

// sent notes what a run was told of the host.
func (c *conversation) sent(m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case "initialize":
		if c.welcome == nil {
			c.hello = m.Own()
		}
	case "notifications/initialized":
		c.initialized = true
	case "logging/setLevel":
		c.level = m.Own()
	case "resources/subscribe":
		c.subscribed[string(wire.Get(m.Params, "uri"))] = m.Own()
	case "resources/unsubscribe":
		delete(c.subscribed, string(wire.Get(m.Params, "uri")))
	}
}

// received appends to lines what the host gets of a message of the run.
func (c *conversation) received(m wire.Message, lines []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(m.Raw) > 0 && m.Raw[0] == '[' {
		for element := range wire.Elements(m.Raw) {
			if m, err := wire.Parse(element); err == nil && m.Method == "" {
				delete(c.waiting, string(m.ID))
			}
		}
		return append(append(lines, m.Raw...), '\n'), nil
	}
	raw := m.Raw
	switch {
	case m.IsRequest():
		shown := c.shownLocked(m.ID)
		c.asked[string(shown)] = bytes.Clone(m.ID)
		if c.runs > 0 {
			raw = wire.Set(raw, "id", shown)
		}
	case m.Method == "notifications/cancelled":
		if id := wire.Get(m.Params, "requestId"); id != nil {
			shown := c.shownLocked(id)
			delete(c.asked, string(shown))
			raw = wire.Set(raw, "params", wire.Set(m.Params, "requestId", shown))
		}
	case m.Method == "notifications/subscriptions/acknowledged":
		if id := wire.Get(m.Params, "_meta", transports.MetaSubscriptionID); c.acknowledgedLocked(id) {
			return appendChanges(lines, wire.Get(m.Params, "notifications"), id), nil
		}
	case m.Method == "" && c.isOursLocked(m.ID):
		return c.answeredLocked(m, lines)
	case m.Method == "" && m.ID != nil:
		if c.welcome == nil && m.Result != nil && bytes.Equal(m.ID, c.hello.ID) {
			c.welcome = bytes.Clone(m.Result)
		}
		delete(c.waiting, string(m.ID))
	}
	return append(append(lines, raw...), '\n'), nil
}

func (c *conversation) isOursLocked(id []byte) bool {
	_, ours := c.ours[string(id)]
	return ours
}

// shownLocked returns the id under which the host knows a question: runs number theirs
// alike.
func (c *conversation) shownLocked(id []byte) []byte {
	if c.runs == 0 {
		return id
	}
	return wire.Quote(fmt.Sprintf("dynmcp-%d-%s", c.runs, id))
}

// acknowledgedLocked reports whether a subscription goes on which the host knows to have
// begun.
func (c *conversation) acknowledgedLocked(id []byte) (goesOn bool) {
	r, waits := c.waiting[string(id)]
	if goesOn = r.acked && c.relistening[string(id)]; waits {
		r.acked = true
		c.waiting[string(id)] = r
	}
	delete(c.relistening, string(id))
	return goesOn
}

// answeredLocked takes the answer to a request of ours. When a run knows the host, that
// is told that all lists may be others, and so may be a resource that it is subscribed to.
func (c *conversation) answeredLocked(m wire.Message, lines []byte) ([]byte, error) {
	uri := c.ours[string(m.ID)]
	delete(c.ours, string(m.ID))
	switch {
	case uri != nil && m.Result != nil:
		return appendUpdate(lines, uri, nil), nil
	case string(m.ID) != c.greeting:
		return lines, nil
	}
	before, now := wire.Get(c.welcome, "protocolVersion"), wire.Get(m.Result, "protocolVersion")
	if !bytes.Equal(before, now) {
		return lines, fmt.Errorf("the next one does not speak %s: %s%s", before, now, m.Error)
	}
	if !c.initialized {
		return lines, nil
	}
	changes := []byte(`{}`)
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if changed := wire.Get(c.welcome, "capabilities", kind, "listChanged"); changed != nil {
			changes = wire.Set(changes, kind+"ListChanged", changed)
		}
	}
	return appendChanges(lines, changes, nil), nil
}

// appendChanges appends the notifications that all has changed of which a host wants to
// know, on the stream of a subscription unless id is nil.
func appendChanges(lines, wants, id []byte) []byte {
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if string(wire.Get(wants, kind+"ListChanged")) != "true" {
			continue
		}
		lines = fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/%s/list_changed"`, kind)
		if id != nil {
			lines = fmt.Appendf(lines, `,"params":{"_meta":{%q:%s}}`, transports.MetaSubscriptionID, id)
		}
		lines = append(lines, '}', '\n')
	}
	for uri := range wire.Elements(wire.Get(wants, "resourceSubscriptions")) {
		lines = appendUpdate(lines, uri, id)
	}
	return lines
}

// appendUpdate appends the notification that a resource has changed, on the stream of a
// subscription unless id is nil.
func appendUpdate(lines, uri, id []byte) []byte {
	params := fmt.Appendf(nil, `{"uri":%s}`, uri)
	if id != nil {
		params = transports.SetMeta(params, transports.MetaSubscriptionID, id)
	}
	return fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":%s}`+"\n", params)
}

// lost returns what the host is told when a run has ended: answers to what that may have
// begun, and that nobody waits for answers to its questions. What is unsent, and what may
// be sent again, goes to the next.
func (c *conversation) lost(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.waiting {
		if !later[id] && r.message.Method == "" {
			lines = appendFailure(lines, id, transports.Unknown)
			delete(c.waiting, id)
		}
	}
	for id := range c.asked {
		lines = fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"the dynmcp that asked has ended"}}`+"\n", id)
	}
	clear(c.asked)
	clear(c.ours)
	clear(c.relistening)
	c.runs++
	return lines
}

// requestsOf returns the ids of the requests in lines of the host.
func requestsOf(lines []byte) map[string]bool {
	ids := map[string]bool{}
	for line := range bytes.Lines(lines) {
		if m, err := wire.Parse(bytes.TrimSpace(line)); err == nil && m.IsRequest() {
			ids[string(m.ID)] = true
		}
	}
	return ids
}

// fail returns the answers to all that waits for one, because no run will give them.
func (c *conversation) fail(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.waiting {
		if !later[id] {
			lines = appendFailure(lines, id, transports.Unknown)
		}
	}
	for id := range later {
		lines = appendFailure(lines, id, transports.NotSent)
	}
	clear(c.waiting)
	return lines
}

func appendFailure(lines []byte, id string, outcome transports.Outcome) []byte {
	hint := "call again"
	if outcome == transports.Unknown {
		hint = "check whether it took effect before retrying"
	}
	for _, piece := range wire.Failure([]byte(id), &wire.Error{
		Code:    transports.CodeShuttingDown,
		Message: "the dynmcp that served this host has ended",
		Data:    fmt.Appendf(nil, `{"source":"dynmcp","outcome":%q,"hint":%q}`, outcome, hint),
	}) {
		lines = append(lines, piece...)
	}
	return append(lines, '\n')
}

// replay returns what the next run is told before anything else: what the host has said
// of itself, and its requests that the last one has not answered and that may be sent
// again, unless they are unsent.
func (c *conversation) replay(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	c.mu.Lock()
	defer c.mu.Unlock()
	tell := func(m wire.Message, uri []byte) (id string) {
		if m.Method == "" {
			return ""
		}
		id = string(wire.Quote("dynmcp-" + rand.Text()))
		c.ours[id] = uri
		lines = append(append(lines, wire.Set(m.Raw, "id", []byte(id))...), '\n')
		return id
	}
	if c.welcome != nil {
		c.greeting = tell(c.hello, nil)
	} else if r, waits := c.waiting[string(c.hello.ID)]; waits && r.message.Method == "initialize" {
		lines = append(append(lines, c.hello.Raw...), '\n')
	}
	if c.initialized {
		lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"...)
	}
	tell(c.level, nil)
	for _, uri := range slices.Sorted(maps.Keys(c.subscribed)) {
		tell(c.subscribed[uri], []byte(uri))
	}
	var again []request
	for id, r := range c.waiting {
		if r.message.Method != "" && id != string(c.hello.ID) && !later[id] {
			again = append(again, r)
			c.relistening[id] = r.acked
		}
	}
	slices.SortFunc(again, func(a, b request) int { return a.number - b.number })
	for _, r := range again {
		lines = append(append(lines, r.message.Raw...), '\n')
	}
	return lines
}
