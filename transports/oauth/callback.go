package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// page is the final page in the browser. It contains nothing of the request.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>dynmcp</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 30em">
<h1>%s</h1><p>%s</p></body></html>
`

// A callback receives the code from the browser, once: a listener on this machine that lives
// as long as the login (RFC 8252, 7.3), or the gateway that its user calls (web.go).
type callback struct {
	RedirectURL string
	path        string
	server      *http.Server // nil if web receives the browser
	web         *webLogin    // nil on this machine
	serving     sync.WaitGroup

	mu      sync.Mutex
	state   string // state of the login under way, empty if no login is
	results chan result
}

type result struct {
	*auth.AuthorizationResult
	err error
}

// listen opens the callback of an entry, which may be nil. It listens on loopback only, whatever the
// entry calls that. close must be called.
func listen(a *schema.Auth) (*callback, error) {
	address := &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/callback"}
	switch {
	case a != nil && a.Callback != "":
		var err error
		if address, err = url.Parse(a.Callback); err != nil {
			return nil, err
		}
	case a != nil && a.CallbackPort != 0:
		address.Host = net.JoinHostPort(address.Host, strconv.Itoa(a.CallbackPort))
	}
	listeners, err := listenAt(address.Hostname(), cmp.Or(address.Port(), "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	if address.Port() == "" {
		_, port, _ := net.SplitHostPort(listeners[0].Addr().String()) // has the form of one
		address.Host = net.JoinHostPort(address.Hostname(), port)
	}
	c := &callback{RedirectURL: address.String(), path: cmp.Or(address.Path, "/"), results: make(chan result, 1)}
	c.server = &http.Server{Handler: c, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	for _, l := range listeners {
		c.serving.Go(func() { _ = c.server.Serve(l) }) // recovers panics of the handler itself
	}
	return c, nil
}

// listenAt listens at a name of this machine. localhost is both loopback addresses, or the one that
// there is: a browser may try either, and no other program may have one of them.
func listenAt(host, port string) ([]net.Listener, error) {
	if host != "localhost" {
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		return []net.Listener{l}, err
	}
	first, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	_, port, _ = net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp6", net.JoinHostPort("::1", port))
	if err == nil {
		return []net.Listener{first, second}, nil
	}
	if other, none := net.Listen("tcp6", "[::1]:0"); none == nil {
		other.Close()
		first.Close()
		return nil, err
	}
	return []net.Listener{first}, nil
}

// close ends the listener, after a page that is being sent.
func (c *callback) close() {
	if c.web != nil {
		c.web.close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
	c.serving.Wait()
}

// expect sets the expected state, which identifies the login in its address. It returns the address
// for the user.
func (c *callback) expect(state, address string) (string, error) {
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
	if c.web != nil {
		return c.web.open(c, state, address)
	}
	return address, nil
}

// wait returns the result from the browser, or the cause of the end of ctx.
func (c *callback) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case r := <-c.results:
		return r.AuthorizationResult, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-c.results: // it came just before
		return r.AuthorizationResult, r.err
	default:
		return nil, context.Cause(ctx)
	}
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	answer := func(status int, title, text string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, page, title, text)
	}
	switch {
	case r.URL.Path != c.path:
		answer(http.StatusNotFound, "Not found", "There is nothing here.")
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		answer(http.StatusMethodNotAllowed, "Not allowed", "Only a browser comes here.")
		return
	}
	answerBack(answer, c.accept(r.URL.Query()))
}

// answerBack answers a browser that came back from the authorization server.
func answerBack(answer func(status int, title, text string), err error) {
	switch {
	case errors.Is(err, errNoSuchLogin):
		answer(http.StatusBadRequest, "No such login", "This login is over, or it was started elsewhere.")
	case err != nil:
		answer(http.StatusBadRequest, "Authorization failed", "dynmcp shows the reason where this login was started. You can close this window.")
	default:
		answer(http.StatusOK, "Authorization complete", "You can close this window and go back to where you came from.")
	}
}

var errNoSuchLogin = errors.New("no login with this state is under way")

// accept takes the first result from the browser or the user with the state of the login under
// way, which an error has as well (RFC 6749, 4.1.2.1). It ignores results with another state,
// which may come from any page or program on this machine.
func (c *callback) accept(query url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == "" || query.Get("state") != c.state {
		return errNoSuchLogin
	}
	c.state = ""
	r := result{AuthorizationResult: &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}}
	switch {
	case query.Has("error"):
		r.err = fmt.Errorf("the authorization server answered %s", transports.Printable([]byte(query.Get("error")), 60))
		if text := query.Get("error_description"); text != "" {
			r.err = fmt.Errorf("%w: %s", r.err, transports.Printable([]byte(text), 200))
		}
	case query.Get("code") == "":
		r.err = errors.New("the browser came back without a code")
	}
	c.results <- r // has room for one result
	return r.err
}
