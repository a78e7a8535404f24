// Package web is a minimal host of MCP over streamable HTTP, of either era.
package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// stateless is the protocol version of hosts without a handshake.
const stateless = "2026-07-28"

// A Host has one session, or is of the stateless era.
type Host struct {
	url     string
	client  *http.Client
	session string // "" before the handshake, and in the stateless era
	// Stateless selects the stateless era, without a handshake and session.
	Stateless bool
	// Token is the bearer token of every request, "" for none.
	Token string
}

// A StatusError is an answer with a status other than 200.
type StatusError struct {
	Code int
	Text string // the body
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d: %.300s", e.Code, e.Text) }

// Outcome returns the outcome of the call in a failure of dynmcp: not_sent, unknown or done, "" if it
// has none.
func Outcome(message string) string {
	_, rest, ok := strings.Cut(message, "outcome ")
	if !ok {
		_, rest, _ = strings.Cut(message, `"outcome":"`)
	}
	for _, outcome := range []string{"not_sent", "unknown", "done"} {
		if strings.HasPrefix(rest, outcome) {
			return outcome
		}
	}
	return ""
}

// NewHost returns a host of the server at url, with the connections of client.
func NewHost(url string, client *http.Client) *Host { return &Host{url: url, client: client} }

// NewClient returns a client that keeps a connection for each concurrent call, but closes idle ones
// before the server may do so.
func NewClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, IdleConnTimeout: 30 * time.Second, DisableCompression: true}}
}

// Session returns the session id, "" without a session.
func (h *Host) Session() string { return h.session }

// Join makes the host use an existing session.
func (h *Host) Join(session string) { h.session = session }

// Forget removes the session, which the server has forgotten.
func (h *Host) Forget() { h.session = "" }

// Handshake begins a session.
func (h *Host) Handshake(ctx context.Context) error {
	h.Forget()
	resp, err := h.post(ctx, "", []byte(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if err != nil {
		return err
	}
	answer, err := body(resp)
	switch {
	case err != nil:
		return fmt.Errorf("initialize: %w", err)
	case resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`)):
		return fmt.Errorf("initialize: %w", &StatusError{resp.StatusCode, string(answer)})
	}
	h.session = resp.Header.Get("Mcp-Session-Id")
	if resp, err = h.post(ctx, "", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return err
	}
	_, err = body(resp)
	return err
}

// Call sends a tools/call with an id in JSON, and returns all messages of the response, the answer
// last.
func (h *Host) Call(ctx context.Context, id, tool, arguments string) ([][]byte, error) {
	return h.Send(ctx, tool, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`, id, h.Meta(), tool, arguments))
}

// Meta returns the member _meta of the params with a trailing comma, "" in the handshake era.
func (h *Host) Meta() string {
	if !h.Stateless {
		return ""
	}
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless + `","io.modelcontextprotocol/clientCapabilities":{}},`
}

// Send is Call with a complete request.
func (h *Host) Send(ctx context.Context, tool string, line []byte) ([][]byte, error) {
	resp, err := h.post(ctx, tool, line)
	if err != nil {
		return nil, err
	}
	text, err := body(resp)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, &StatusError{resp.StatusCode, string(text)}
	case resp.Header.Get("Content-Type") == "application/json":
		return [][]byte{text}, nil
	}
	return data(text), nil
}

// Listen opens the GET stream. The caller must close its body.
func (h *Host) Listen(ctx context.Context) (*http.Response, error) {
	return h.send(ctx, http.MethodGet, "", nil)
}

// End ends the session. An answer with a status of 400 or more is a StatusError.
func (h *Host) End(ctx context.Context) error {
	resp, err := h.send(ctx, http.MethodDelete, "", nil)
	if err != nil {
		return err
	}
	text, err := body(resp)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		return &StatusError{resp.StatusCode, string(text)}
	}
	return err
}

func (h *Host) post(ctx context.Context, tool string, line []byte) (*http.Response, error) {
	return h.send(ctx, http.MethodPost, tool, line)
}

func (h *Host) send(ctx context.Context, method, tool string, line []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.url, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header["Content-Type"] = contentType
	req.Header["Accept"] = accept
	if h.Token != "" {
		req.Header["Authorization"] = []string{"Bearer " + h.Token}
	}
	if h.session != "" {
		req.Header["Mcp-Session-Id"] = []string{h.session}
	}
	if h.Stateless {
		req.Header["Mcp-Protocol-Version"] = []string{stateless}
		req.Header["Mcp-Method"] = []string{"tools/call"}
		req.Header["Mcp-Name"] = []string{tool}
	}
	return h.client.Do(req)
}

var contentType, accept = []string{"application/json"}, []string{"application/json, text/event-stream"}

// body reads the complete body.
func body(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	if resp.ContentLength < 0 {
		return io.ReadAll(resp.Body)
	}
	text := make([]byte, resp.ContentLength)
	_, err := io.ReadFull(resp.Body, text)
	return text, err
}

// data returns the data of the events of a stream, each of which must be on one line.
func data(text []byte) (all [][]byte) {
	for line := range bytes.Lines(text) {
		if event, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(event) > 1 {
			all = append(all, bytes.TrimSpace(event))
		}
	}
	return all
}

// Number returns the number after a key, -1 if absent.
func Number(text []byte, key string) int {
	_, rest, ok := bytes.Cut(text, []byte(key))
	if !ok {
		return -1
	}
	end := 0
	for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
		end++
	}
	if n, err := strconv.Atoi(string(rest[:end])); err == nil {
		return n
	}
	return -1
}
