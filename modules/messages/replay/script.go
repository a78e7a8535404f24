package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// An exchange is a recorded request or notification of the host, with the messages that the server
// sent for it: progress and response, and other messages before the next exchange.
type exchange struct {
	method string
	params json.RawMessage
	key    string // see keyOf
	at     float64
	events []event
	over   bool // it has a response, or needs none
	played bool
}

// An event is a message of the server.
type event struct {
	at      float64 // time of the message, in milliseconds since the start of the recording
	message wire.Message
	about   *exchange // the exchange that its id or token refers to, nil for none
}

// A script is the recording of one server.
type script map[string][]*exchange // by method, in order

// scriptOf returns the script of a server. server may be "" if the recording has only one.
func scriptOf(lines []recording.Line, server string) (script, error) {
	type connected struct {
		server string
		conn   int64
	}
	connections, scripts := map[connected]*connection{}, map[string]script{}
	for _, l := range lines {
		if l.Host != "" || l.Server == "" {
			continue
		}
		if scripts[l.Server] == nil {
			scripts[l.Server] = script{}
		}
		c := connections[connected{l.Server, l.Conn}]
		if c == nil {
			c = &connection{script: scripts[l.Server], byID: map[string]*exchange{}, tokens: map[string]*exchange{}}
			connections[connected{l.Server, l.Conn}] = c
		}
		for m := range l.Messages() {
			c.read(l, m)
		}
	}
	all := slices.Sorted(maps.Keys(scripts))
	switch {
	case len(all) == 0:
		return nil, errors.New("the recording has no message of a server")
	case server == "" && len(all) > 1:
		return nil, hint.With(fmt.Errorf("the recording has %d servers", len(all)), "say which one: --server %s", strings.Join(all, ", --server "))
	case server == "":
		return scripts[all[0]], nil
	case scripts[server] == nil:
		return nil, fmt.Errorf("the recording has no server %q, but %s", server, strings.Join(all, ", "))
	}
	return scripts[server], nil
}

// A connection assigns the recorded messages of one connection to exchanges.
type connection struct {
	script script
	byID   map[string]*exchange
	tokens map[string]*exchange
	open   []*exchange // requests without a response, except for subscriptions
	last   *exchange
}

func (c *connection) read(l recording.Line, m wire.Message) {
	if l.Dir == "out" {
		c.sent(l.MS, m)
	} else {
		c.received(l.MS, m)
	}
}

func (c *connection) sent(at float64, m wire.Message) {
	if m.Method == "" || m.Method == "notifications/cancelled" {
		return
	}
	x := &exchange{method: m.Method, params: m.Params, key: keyOf(m.Params), at: at, over: m.ID == nil}
	c.script[m.Method], c.last = append(c.script[m.Method], x), x
	if m.ID == nil {
		return
	}
	c.byID[string(m.ID)] = x
	if token := wire.Get(m.Params, "_meta", "progressToken"); token != nil {
		c.tokens[string(token)] = x
	}
	if m.Method != methodListen {
		c.open = append(c.open, x)
	}
}

// received adds a message of the server to the exchange of its id or token, or else to the newest
// request without a response, or else to the last exchange.
func (c *connection) received(at float64, m wire.Message) {
	e, to := event{at: at, message: m}, c.last
	if len(c.open) > 0 {
		to = c.open[len(c.open)-1]
	}
	switch m.Method {
	case "":
		if e.about = c.byID[string(m.ID)]; e.about == nil {
			return // its request was not recorded
		}
		e.about.over = true
		if e.about.method == methodListen {
			break // the end of a subscription belongs to the last exchange, which caused it
		}
		to, c.last = e.about, e.about
		c.open = slices.DeleteFunc(c.open, func(x *exchange) bool { return x == to })
	case "notifications/progress":
		e.about = c.tokens[string(wire.Get(m.Params, "progressToken"))]
		to = cmp.Or(e.about, to)
	case "notifications/subscriptions/acknowledged":
		e.about = c.byID[string(wire.Get(m.Params, "_meta", transports.MetaSubscriptionID))]
		to = cmp.Or(e.about, to)
	default:
		e.about = c.byID[string(wire.Get(m.Params, "_meta", transports.MetaSubscriptionID))]
	}
	if to != nil {
		to.events = append(to.events, e)
	}
}

// keyOf returns the normalized JSON of params without _meta. Equal requests have the same key.
func keyOf(params []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(wire.Delete(params, "_meta")))
	decoder.UseNumber()
	object := map[string]any{}
	if len(params) > 0 && decoder.Decode(&object) != nil {
		return string(params)
	}
	text, _ := json.Marshal(object) // cannot fail for a decoded object
	return string(text)
}

const (
	methodDiscover = "server/discover"
	methodListen   = "subscriptions/listen" // its response ends a subscription
)

// alike are the methods whose recorded requests answer any other of the method, because the params
// depend on the host.
var alike = []string{"initialize", methodDiscover, methodListen}

// find returns the exchange for a request or a notification, or nil. Equal exchanges are returned in
// their order; after the last one, find returns the last one again.
func (s script) find(m wire.Message) *exchange {
	key, all := keyOf(m.Params), s[m.Method]
	fit := slices.DeleteFunc(slices.Clone(all), func(x *exchange) bool { return x.key != key })
	if len(fit) == 0 {
		fit = slices.DeleteFunc(slices.Clone(all), func(x *exchange) bool { return !fitsRedacted(x.key, key) })
	}
	if len(fit) == 0 && (m.ID == nil || slices.Contains(alike, m.Method)) {
		fit = all
	}
	if len(fit) == 0 {
		return nil
	}
	if i := slices.IndexFunc(fit, func(x *exchange) bool { return !x.played }); i >= 0 {
		return fit[i]
	}
	return fit[len(fit)-1]
}

// fitsRedacted reports whether key equals redacted except for redacted secrets.
func fitsRedacted(redacted, key string) bool {
	if !strings.Contains(redacted, redact.Mark) {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(redacted), regexp.QuoteMeta(redact.Mark), `.*`)
	return regexp.MustCompile(`^(?s:` + pattern + `)$`).MatchString(key)
}

// version returns the recorded protocol version, or "".
func (s script) version() string {
	for _, x := range s["initialize"] {
		for _, e := range x.events {
			if version, ok := wire.Text(wire.Get(e.message.Result, "protocolVersion")); ok {
				return version
			}
		}
	}
	if len(s[methodDiscover]) > 0 {
		return transports.StatelessVersion
	}
	return ""
}

// otherEra reports whether a request belongs to the era that was not recorded.
func (s script) otherEra(m wire.Message) bool {
	version := s.version()
	if version >= transports.StatelessVersion {
		return m.Method == "initialize"
	}
	return version != "" && wire.Get(m.Params, "_meta", transports.MetaVersion) != nil
}

// refusal returns the error for a request of the other era.
func (s script) refusal() *wire.Error {
	version := s.version()
	return &wire.Error{
		Code:    transports.CodeUnsupportedVersion,
		Message: fmt.Sprintf("the server was recorded with version %s of the protocol; dynmcp -- dynmcp replay FILE answers hosts of all versions", version),
		Data:    fmt.Appendf(nil, `{"supported":[%q]}`, version),
	}
}

// missing returns the error for a request that was not recorded.
func (s script) missing(m wire.Message) *wire.Error {
	all := s[m.Method]
	if len(all) == 0 {
		methods := strings.Join(slices.Sorted(maps.Keys(s)), ", ")
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("the recording has no request %s; it has: %s", m.Method, methods)}
	}
	key := keyOf(m.Params)
	like := slices.MinFunc(all, func(a, b *exchange) int { return cmp.Compare(distance(a.key, key), distance(b.key, key)) })
	return &wire.Error{
		Code:    wire.CodeInvalidParams,
		Message: fmt.Sprintf("this %s was not recorded; the nearest that was has params %s", m.Method, display.Cut(like.key, 300)),
		Data:    fmt.Appendf(nil, `{"nearest":%s}`, cmp.Or(string(like.params), "{}")),
	}
}

// distance returns how much two params differ. Another name or uri counts most.
func distance(a, b string) int {
	const looked = 200
	d := nearest.Distance([]rune(display.Prefix(a, looked)), []rune(display.Prefix(b, looked)))
	for _, member := range []string{"name", "uri"} {
		if !bytes.Equal(wire.Get([]byte(a), member), wire.Get([]byte(b), member)) {
			d += 2 * looked
		}
	}
	return d
}
