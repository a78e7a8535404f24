package internode

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
)

// small returns a request that is passed on by a side.
func small(t testing.TB) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://any/mcp", strings.NewReader(call(1, "x")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// version is the handler of requests that are answered with the version of HTTP that
// they came over.
func version(w http.ResponseWriter, r *http.Request, _ string) { fmt.Fprint(w, r.ProtoMajor) }

// ask makes a small request and returns what it is answered with.
func ask(t *testing.T, client *Client, address string) string {
	t.Helper()
	resp, err := client.Request(address, "").RoundTrip(small(t))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A replica that is about to end has its sides given up before it closes them: what is
// under way is answered, all else comes over HTTP/2, where no request is sent on a
// connection that is about to be closed.
func TestSidesEndBeforeTheirReplica(t *testing.T) {
	identity := keyed(t, seal.Random())
	leaving, begun, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	at := serve(t, identity, Options{Leaving: leaving, Requests: func(w http.ResponseWriter, r *http.Request, principal string) {
		if principal == "slow" {
			close(begun)
			<-finish
		}
		version(w, r, principal)
	}})
	address := at.Addr().String()
	client := newClient(t, identity, "a")
	for range 3 {
		if got := ask(t, client, address); got != "1" {
			t.Errorf("a small request came over HTTP/%s", got)
		}
	}
	if got := at.count(); got != 2 {
		t.Errorf("there were %d connections", got)
	}
	slow := make(chan string, 1)
	go func() {
		resp, err := client.Request(address, "slow").RoundTrip(small(t))
		if err != nil {
			slow <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		slow <- fmt.Sprint(string(text), err)
	}()
	<-begun
	close(leaving)
	close(finish)
	if got := <-slow; got != "1<nil>" {
		t.Errorf("what was under way ends with %s", got)
	}
	// Each side learns of it by itself. When none is there for a request, none ever is.
	for end := time.Now().Add(patience); ask(t, client, address) != "2"; {
		if time.Now().After(end) {
			t.Fatal("requests still come by sides")
		}
	}
	for range 3 {
		if got := ask(t, client, address); got != "2" {
			t.Errorf("a request came over HTTP/%s", got)
		}
	}
}

// A replica of a release that has no sides gets all over HTTP/2.
func TestAReleaseWithoutSides(t *testing.T) {
	identity := keyed(t, seal.Random())
	config := identity.server()
	inner := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := inner(hello)
		if err == nil {
			c.NextProtos = []string{"h2"}
		}
		return c, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	server := &http.Server{TLSConfig: config, Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/request/") {
			version(w, r, "")
			return
		}
		http.Error(w, "there is no such route", http.StatusNotImplemented)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(ln, "", "") // it is shut down
	}()
	defer func() {
		_ = server.Shutdown(context.Background())
		<-served
	}()
	client := newClient(t, identity, "a")
	defer client.Close()
	for range 2 {
		if got := ask(t, client, ln.Addr().String()); got != "2" {
			t.Errorf("a request came over HTTP/%s", got)
		}
	}
}
