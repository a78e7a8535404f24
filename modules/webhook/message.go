package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/event"
)

// A message is the body of a request.
type message struct {
	Type    string    `json:"type"` // call.failed, call.denied, call.slow, tools.changed or test
	Time    time.Time `json:"timestamp"`
	Data    any       `json:"data"`
	Dropped int64     `json:"dropped,omitempty"` // messages that were lost before this one
}

// A callData is the data of a message about a call. It has neither arguments nor result.
type callData struct {
	Server    string  `json:"server"`
	Tool      string  `json:"tool,omitempty"`
	Method    string  `json:"method"`
	Kind      string  `json:"kind"`    // how it ended, as in the metrics
	Outcome   string  `json:"outcome"` // done, not_sent or unknown
	Rule      int     `json:"rule,omitempty"`
	MS        float64 `json:"ms"`
	Host      string  `json:"host,omitempty"`
	Principal string  `json:"principal,omitempty"`
	Session   string  `json:"session"`
}

// A toolsData is the data of a message about changed tools.
type toolsData struct {
	Server  string   `json:"server"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// aboutCall returns the message of a call for a webhook; ok is false if there is none.
func (w Webhook) aboutCall(c *event.Call) (m message, ok bool) {
	took := c.End.Sub(c.Began)
	var on string
	switch {
	case c.Own() || c.Kind == "cancelled":
		return message{}, false
	case c.Kind == "denied" || c.Kind == "not_approved":
		on = "denied"
	case c.Kind != "ok" && slices.Contains(w.On, "failed"):
		on = "failed"
	case took >= w.Slow:
		on = "slow"
	}
	if !slices.Contains(w.On, on) {
		return message{}, false
	}
	return message{Type: "call." + on, Time: c.End, Data: callData{
		Server: c.Upstream, Tool: cli.Secrets.String(c.Tool), Method: c.Method, Kind: c.Kind, Outcome: string(c.Outcome), Rule: c.Rule,
		MS: float64(took.Microseconds()) / 1000, Host: cli.Secrets.String(c.From.Host), Principal: c.From.User, Session: c.From.ID,
	}}, true
}

// maxNames bounds the names of each list of a message.
const maxNames = 100

// aboutTools returns the message of changed tools for a webhook; ok is false if there is none.
func (w Webhook) aboutTools(t event.Tools, now time.Time) (m message, ok bool) {
	names := func(all []string) (first []string) {
		for _, name := range all[:min(len(all), maxNames)] {
			first = append(first, cli.Secrets.String(name))
		}
		return first
	}
	return message{Type: "tools.changed", Time: now, Data: toolsData{t.Upstream, names(t.Added), names(t.Removed), names(t.Changed)}},
		slices.Contains(w.On, "changed")
}

// headers returns the headers of a request with a body, as the Standard Webhooks specification has
// them: an id, which is the same when a request is repeated, the time, and the signature.
func (w Webhook) headers(id string, body []byte, now time.Time) map[string]string {
	at := strconv.FormatInt(now.Unix(), 10)
	headers := map[string]string{"webhook-id": id, "webhook-timestamp": at}
	if key, err := w.key(); err == nil && len(key) > 0 {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		headers["webhook-signature"] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return headers
}

func newID() string { return "msg_" + rand.Text() }
