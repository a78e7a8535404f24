package selfhost

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Each hint, followed, makes the server work: right is the url that it leads to.
func TestHintsOfAddressesLeadToTheServer(t *testing.T) {
	plain := mcptest.ServeFake(t)
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	empty := httptest.NewServer(http.NotFoundHandler())
	gone := httptest.NewServer(nil)
	gone.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "upstream gone", http.StatusBadGateway) }))
	for _, s := range []*httptest.Server{empty, tlsServer, broken} {
		t.Cleanup(s.Close)
	}
	for _, c := range []struct{ url, hint string }{
		{empty.URL + "/nowhere", "check the path of its url"},
		{strings.Replace(plain.URL, "http:", "https:", 1), "write http://"},
		{strings.Replace(tlsServer.URL, "https:", "http:", 1) + "/mcp", "write https://"},
		{gone.URL + "/mcp", "nothing listens there"},
		{broken.URL + "/mcp", "its own log says more"},
	} {
		server := schema.Server{Name: "a", Transport: schema.StreamableHTTP, URL: c.url, LoadTimeout: time.Minute}
		conn, err := upstream.Open(server, upstream.ConnOptions{})
		if err == nil {
			_, err = conn.Call(t.Context(), "initialize", []byte(`{}`))
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: it works", c.url)
			continue
		}
		advised := withAdvice(server, err)
		got := ""
		if with, ok := errors.AsType[*hint.Error](advised); ok {
			got = with.Hint
		} else if failure, ok := errors.AsType[*transports.Failure](err); ok {
			got = failure.Hint
		}
		if !strings.Contains(got, c.hint) {
			t.Errorf("%s: %v: got the hint %q, want %q", c.url, err, got, c.hint)
		}
	}
}
