//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dynmcp/dynmcp/bench/internal/issuer"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// ids sends session ids and request states to each replica that were changed, or given to another
// user or by another cluster.
func (p *proof) ids() error {
	dir := filepath.Join(p.dir, "ids")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	users, err := issuer.New("proof")
	if err != nil {
		return err
	}
	defer users.Close()
	calls := filepath.Join(dir, "calls")
	config := filepath.Join(dir, "users.json")
	text, err := json.Marshal(map[string]any{
		"mcp":          map[string]any{"fake": map[string]any{"command": p.fake, "args": []string{"-ledger", calls, "-max-life", "1h"}, "place": "one"}},
		"gateway":      map[string]any{"issuers": []string{users.URL}, "audience": users.Audience},
		"startup_wait": "60s",
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	c, err := p.launch("ids", setting{config: config, local: true})
	if err != nil {
		return err
	}
	defer c.close()
	foreign, err := c.foreign()
	if err != nil {
		return err
	}
	defer func() { _ = foreign.end(syscall.SIGTERM) }() // not judged

	client := web.NewClient()
	defer client.CloseIdleConnections()
	a := &attack{cluster: c, calls: calls, ann: users.Token("ann"), bob: users.Token("bob"), client: client}
	if err := a.sessions(foreign); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	if err := a.states(foreign); err != nil {
		return fmt.Errorf("states of requests: %w", err)
	}
	p.Must("calls that reached a server", a.reached, 0)
	fmt.Printf("  %d requests with an id that was changed, is another user's, or of another key\n", a.tried)
	return nil
}

// foreign starts a dynmcp that belongs to no cluster, with the same config.
func (c *cluster) foreign() (*node, error) {
	address := fmt.Sprintf("%s:%d", c.net.at(toHosts, 99), hostPort)
	n, err := c.newNode("foreign", c.dynmcp, "serve", "--http", address, "-c", c.config)
	if err != nil {
		return nil, err
	}
	n.health = "http://" + address + "/health"
	if err := n.start(); err != nil {
		return nil, err
	}
	return n, n.works()
}

// An attack counts its requests, and those that reached a server.
type attack struct {
	*cluster
	calls    string // the ledger of the server
	ann, bob string // tokens
	client   *http.Client
	tried    int
	reached  int
}

// at returns a host of a user at a node.
func (a *attack) at(n *node, user string) *web.Host {
	h := web.NewHost(strings.TrimSuffix(n.health, "/health")+"/mcp", a.client)
	h.Token = user
	return h
}

// ran returns how many calls the server has received.
func (a *attack) ran() int {
	text, _ := os.ReadFile(a.calls) // no file: no calls yet
	return strings.Count("\n"+string(text), "\ncall ")
}

// refused judges that a request is answered with a status, and with a code unless it is "".
func (a *attack) refused(what string, do func(ctx context.Context) error, status int, code string) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	before := a.ran()
	err := do(ctx)
	a.tried++
	a.reached += a.ran() - before
	var said *web.StatusError
	if !errors.As(err, &said) || said.Code != status || !strings.Contains(said.Text, code) {
		a.Fail("%s: got %v, must be %d %s", what, err, status, code)
	}
}

const echoed = `{"tool_name":"fake/echo","tool_input":{"nonce":"x"}}`

func (a *attack) sessions(foreign *node) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	ann := a.at(a.replicas[0], a.ann)
	if err := ann.Handshake(ctx); err != nil {
		return err
	}
	stranger := a.at(foreign, a.ann)
	if err := stranger.Handshake(ctx); err != nil {
		return err
	}
	defer func() { _ = stranger.End(context.Background()) }()
	for _, n := range a.replicas {
		try := func(what, user, session string) {
			h := a.at(n, user)
			h.Join(session)
			what = fmt.Sprintf("%s at %s", what, n.name)
			a.refused(what+", a call", func(ctx context.Context) error { _, err := h.Call(ctx, "1", "use_tool", echoed); return err }, http.StatusNotFound, "")
			a.refused(what+", its stream", func(ctx context.Context) error { return stream(ctx, h) }, http.StatusNotFound, "")
			a.refused(what+", its end", h.End, http.StatusNotFound, "")
		}
		for _, id := range tampered(ann.Session()) {
			try("a session that was changed", a.ann, id)
		}
		try("a session of another user", a.bob, ann.Session())
		try("a session of another key", a.ann, stranger.Session())
	}
	// Her session still works for her.
	for _, n := range a.replicas {
		h := a.at(n, a.ann)
		h.Join(ann.Session())
		if _, err := h.Call(ctx, "1", "use_tool", echoed); err != nil {
			return fmt.Errorf("her own, at %s: %w", n.name, err)
		}
	}
	return ann.End(ctx)
}

// stream opens the stream of a session and closes it.
func stream(ctx context.Context, h *web.Host) error {
	resp, err := h.Listen(ctx)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &web.StatusError{Code: resp.StatusCode}
	}
	return nil
}

// tampered returns changed forms of a text.
func tampered(text string) []string {
	all := []string{text[:len(text)-1], text[:len(text)/2], text + "A", strings.ToLower(text), text + text}
	for i := 0; i < len(text); i += max(1, len(text)/20) {
		changed := []byte(text)
		changed[i] = 'A'
		if text[i] == 'A' {
			changed[i] = 'B'
		}
		all = append(all, string(changed))
	}
	return all
}

// states sends the states of calls that wait for an answer of their host.
func (a *attack) states(foreign *node) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	strange, err := park(ctx, a.at(foreign, a.ann))
	if err != nil {
		return fmt.Errorf("of another key: %w", err)
	}
	for i, n := range a.replicas {
		state, err := park(ctx, a.at(n, a.ann))
		if err != nil {
			return err
		}
		for _, to := range a.replicas {
			try := func(what, user, state string) {
				a.refused(fmt.Sprintf("%s, of %s at %s", what, n.name, to.name),
					func(ctx context.Context) error { _, err := ask(ctx, a.at(to, user), state, "stolen"); return err }, http.StatusBadRequest, "-32602")
			}
			for _, changed := range tampered(state) {
				try("a state that was changed", a.ann, changed)
			}
			try("a state of another user", a.bob, state)
			try("a state of another key", a.ann, strange)
		}
		// Her own call continues, at another replica.
		messages, err := ask(ctx, a.at(a.replicas[(i+1)%nodes], a.ann), state, "hers")
		if err != nil {
			return fmt.Errorf("her own: %w", err)
		}
		if last := string(messages[len(messages)-1]); !strings.Contains(last, "hers") || strings.Contains(last, "stolen") {
			a.Fail("her parked call got %.500s", last)
		}
	}
	return nil
}

// park makes a call whose server asks a question, and returns the request state.
func park(ctx context.Context, h *web.Host) (state string, err error) {
	messages, err := ask(ctx, h, "", "")
	if err != nil {
		return "", err
	}
	var m struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal(messages[len(messages)-1], &m); err != nil || m.Result.RequestState == "" {
		return "", fmt.Errorf("no requestState in %.500s: %w", messages[len(messages)-1], err)
	}
	return m.Result.RequestState, nil
}

// ask makes a call whose server asks a question, or with a state answers the question.
func ask(ctx context.Context, h *web.Host, state, said string) ([][]byte, error) {
	more := ""
	if state != "" {
		more = fmt.Sprintf(`,"requestState":%q,"inputResponses":{"question-1":{"action":"accept","content":{"who":%q}}}`, state, said)
	}
	h.Stateless = true
	return h.Send(ctx, "use_tool", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"proof","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},`+
		`"name":"use_tool","arguments":{"tool_name":"fake/ask","tool_input":{"method":"elicitation/create","params":{"message":"who","requestedSchema":{"type":"object","properties":{}}}}}%s}}`, more))
}
