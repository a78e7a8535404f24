package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// greeting answers requests with the result or error of their method in answers. Others are not
// answered.
func greeting(answers map[string]string) func(p *puppet, m wire.Message) {
	return func(p *puppet, m wire.Message) {
		if answer := answers[m.Method]; answer != "" && m.IsRequest() {
			p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`)
		}
	}
}

const (
	speaksOld   = `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}`
	speaksNew   = `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`
	refuses     = `"error":{"code":-32601,"message":"no"}`
	refusesOld  = `"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`
	refusesNew  = `"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}`
	refusesBoth = `"error":{"code":-32022,"message":"no","data":{"supported":["1.0"]}}`
)

// The capabilities that the host declares reach the upstream. Without any it gets an empty object.
func TestHandshakeDeclaresCapabilities(t *testing.T) {
	for _, declared := range []string{"", `{"roots":{}}`} {
		synctest.Test(t, func(t *testing.T) {
			c, p := inMemory(t, schema.Server{}, ConnOptions{HandshakeOnly: true}, greeting(map[string]string{"initialize": speaksOld}))
			var capabilities json.RawMessage
			if declared != "" {
				capabilities = json.RawMessage(declared)
			}
			if err := c.Handshake(t.Context(), capabilities); err != nil {
				t.Fatal(err)
			}
			if got, want := p.lines()[0], `"capabilities":`+cmp.Or(declared, "{}"); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
		})
	}
}

// An upstream that refuses initialize is asked for the stateless era. With HandshakeOnly it is
// asked only if its refusal names a stateless version.
func TestRefusedHandshake(t *testing.T) {
	handshake := func() (Host, bool) { return Host{Era: transports.Handshake}, true }
	for name, test := range map[string]struct {
		opts       ConnOptions
		initialize string
		discover   string
		stateless  bool
		asked      int // requests of server/discover
	}{
		"the host's era":           {ConnOptions{Host: handshake}, refuses, speaksNew, true, 1},
		"the host's era, neither":  {ConnOptions{Host: handshake}, refuses, refuses, false, 1},
		"the version is named":     {ConnOptions{HandshakeOnly: true}, refusesOld, speaksNew, true, 1},
		"another version is named": {ConnOptions{HandshakeOnly: true}, refusesBoth, speaksNew, false, 0},
		"no version is named":      {ConnOptions{HandshakeOnly: true}, refuses, speaksNew, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := inMemory(t, schema.Server{}, test.opts, greeting(map[string]string{"initialize": test.initialize, methodDiscover: test.discover}))
				err := c.Handshake(t.Context(), nil)
				if (err == nil) != test.stateless || (c.Era() == transports.Stateless) != test.stateless || p.sent(methodDiscover) != test.asked {
					t.Errorf("got %v, era %d, asked %d times", err, c.Era(), p.sent(methodDiscover))
				}
			})
		})
	}
}

// A start may take longer than a call: the server's timeout limits neither the handshake nor the
// lists.
func TestStartLongerThanTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := greeting(map[string]string{"initialize": speaksOld, "tools/list": `"result":{"tools":[]}`})
		c, _ := inMemory(t, schema.Server{Timeout: time.Second}, ConnOptions{HandshakeOnly: true}, func(p *puppet, m wire.Message) {
			if m.IsRequest() {
				time.Sleep(20 * time.Second)
				answers(p, m)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Handshake(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.List(ctx, "tools/list", "tools", nil); err != nil {
			t.Error(err)
		}
	})
}

// If a refusal names another version of the handshake, initialize is repeated with that.
func TestHandshakeInAnotherVersion(t *testing.T) {
	for refusal, want := range map[string][]string{refusesNew: {"2025-11-25", "2025-06-18"}, refusesOld: {"2025-11-25"}} {
		synctest.Test(t, func(t *testing.T) {
			var proposed []string
			c, _ := inMemory(t, schema.Server{}, ConnOptions{HandshakeOnly: true}, func(p *puppet, m wire.Message) {
				if m.Method != "initialize" {
					return
				}
				version, _ := wire.Text(wire.Get(m.Params, "protocolVersion"))
				answer := refusal
				if proposed = append(proposed, version); version == "2025-06-18" {
					answer = strings.Replace(speaksOld, "2025-11-25", version, 1)
				}
				p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_ = c.Handshake(ctx, nil)
			if synctest.Wait(); !slices.Equal(proposed, want) {
				t.Errorf("proposed %q, want %q", proposed, want)
			}
		})
	}
}

// After an HTTP error status for initialize, the upstream is asked for the stateless era, unless
// the status asks for a login.
func TestRefusedHandshakeOverHTTP(t *testing.T) {
	for status, want := range map[int]transports.Era{http.StatusBadRequest: transports.Stateless, http.StatusUnauthorized: transports.Handshake} {
		r := &responder{answer: func(r *http.Request, _ int) (int, string) {
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			if m.Method == methodDiscover {
				return 200, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n\n", m.ID, speaksNew)
			}
			return status, ""
		}}
		onResponder(t, r, func(c *Conn, _ *httpLink) {
			c.opts.Host = func() (Host, bool) { return Host{Era: transports.Handshake}, true }
			if err := c.Handshake(context.Background(), nil); c.Era() != want || (err == nil) != (want == transports.Stateless) {
				t.Errorf("status %d: got era %d, %v", status, c.Era(), err)
			}
		})
	}
}

// If the stream to a replica ends during server/discover, the error is ErrMoved, not ErrProbe. If
// the server refuses server/discover, initialize follows.
func TestHandshakeThroughAReplica(t *testing.T) {
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(p *puppet, _ wire.Message) { p.hangUp() }
			if answered {
				answer = greeting(map[string]string{methodDiscover: refuses, "initialize": speaksOld})
			}
			c, _ := inMemoryBy(t, OpenReplica, schema.Server{}, ConnOptions{}, answer)
			err := c.Handshake(t.Context(), nil)
			if answered != (err == nil) || errors.Is(err, ErrProbe) || !answered && !errors.Is(err, ErrMoved) {
				t.Errorf("answered %t: got %v", answered, err)
			}
			if answered { // an error of the server, not of the replica
				_, err := c.Call(t.Context(), methodDiscover, nil)
				if rpc, ok := errors.AsType[*wire.Error](err); !ok || rpc.Code != wire.CodeMethodNotFound {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// The failure of a handshake hides secrets in the answer of the upstream.
func TestFailuresHideSecrets(t *testing.T) {
	const secret = "s3cret-of-the-config"
	var secrets redact.Redactor
	secrets.Add(secret)
	c, _ := inMemory(t, schema.Server{}, ConnOptions{HandshakeOnly: true, Redact: &secrets}, greeting(map[string]string{
		"initialize": `"result":{"protocolVersion":"` + secret + `","capabilities":{}}`,
	}))
	err := c.Handshake(t.Context(), nil)
	if f := wantFailure(t, err, transports.CodeStartFailed, transports.NotSent); strings.Contains(f.Text(), secret) || !strings.Contains(f.Text(), "dynmcp does not support") {
		t.Errorf("got %s", f.Text())
	}
}
