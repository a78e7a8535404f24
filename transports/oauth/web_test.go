package oauth

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

var pageLink = regexp.MustCompile(`<a href="([^"]+)"`)

// A user logs in through replicas of a gateway: the one that shows the page and the one that his
// browser comes back to need not be that where the login began.
func TestALoginGoesThroughAnyReplica(t *testing.T) {
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	memory, keys := memkv.New(), seal.Random()
	connect := func() *logins.Store {
		connection := memory.Connect()
		t.Cleanup(func() { connection.Close() })
		bucket, err := connection.Bucket(deadline(t), "logins")
		if err != nil {
			t.Fatal(err)
		}
		return logins.NewShared(bucket, keys, logins.LockTime, slog.New(slog.DiscardHandler))
	}
	// The balancer sends each request to the next replica, and those that begin logins are at two.
	var turn atomic.Int64
	var replicas [2]*Web
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[turn.Add(1)%2].ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	stores := [2]*logins.Store{connect(), connect()}
	for i := range replicas {
		replicas[i] = NewWeb(balancer.URL, stores[i])
	}
	server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: as.URL, LoadTimeout: 1e10}
	for i, user := range []string{"ann", "bob", "cid", "dee"} {
		shown := make(chan string, 1)
		flow := Flow{LoginOptions: LoginOptions{Store: stores[i/2]}, Server: server, Principal: user, Web: replicas[i/2], Show: func(a string) { shown <- a }}
		ended := make(chan error, 1)
		go func() {
			_, err := flow.Run(deadline(t))
			ended <- err
		}()
		address := <-shown
		jar, _ := cookiejar.New(nil)
		browser := http.Client{Jar: jar}
		if i%2 == 1 {
			turn.Add(1) // so that the replicas take turns
		}
		status, page := visit(t, &browser, address)
		if status != http.StatusOK || !strings.Contains(page, "<b>"+user+"</b>") {
			t.Fatalf("%s: the page: %d %s", user, status, page)
		}
		if status, text := visit(t, &browser, html.UnescapeString(pageLink.FindStringSubmatch(page)[1])); status != http.StatusOK {
			t.Fatalf("%s came back: %d %s", user, status, text)
		}
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if status, _ := visit(t, &browser, address); status != http.StatusNotFound {
			t.Errorf("%s: the page of a login that is over: %d", user, status)
		}
	}
	// Both replicas have all four, and no two are the same.
	tokens := map[string]bool{}
	for _, user := range []string{"ann", "bob", "cid", "dee"} {
		for _, store := range stores {
			l, err := store.Load(logins.KeyOf(server).Of(user))
			if err != nil || l == nil || l.Principal != user {
				t.Fatalf("%s: %+v, %v", user, l, err)
			}
			tokens[l.AccessToken] = true
		}
	}
	if len(tokens) != 4 {
		t.Errorf("4 users have %d tokens", len(tokens))
	}
	if l, err := stores[0].Load(logins.KeyOf(server)); l != nil || err != nil {
		t.Errorf("the login for all: %+v, %v", l, err)
	}
}

// A state that was changed, that is of another gateway, or that is used in another browser or twice
// completes no login.
func TestOnlyTheBrowserOfTheLoginComesBack(t *testing.T) {
	var web *Web
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { web.ServeHTTP(w, r) }))
	t.Cleanup(gateway.Close)
	web = NewWeb(gateway.URL+"/", logins.NewFiles(t.TempDir()))
	back, err := web.callback(logins.Key{Server: "a<b", Principal: "ann"})
	if err != nil || back.RedirectURL != gateway.URL+"/login/callback" {
		t.Fatalf("%v, %v", back, err)
	}
	defer back.close()
	page, err := back.expect("sdk-state", "https://as.example/authorize?client_id=c&state=sdk-state")
	if err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	hers, other := &http.Client{Jar: jar}, &http.Client{}
	_, text := visit(t, hers, page)
	if strings.Contains(text, "a<b") || strings.Contains(text, "sdk-state") {
		t.Errorf("the page: %s", text)
	}
	link := html.UnescapeString(pageLink.FindStringSubmatch(text)[1])
	_, query, _ := strings.Cut(link, "state=")
	come := back.RedirectURL + "?code=c&state=" + query
	for name, try := range map[string]struct {
		browser *http.Client
		address string
		status  int
	}{
		"another browser": {other, come, http.StatusForbidden},
		"no state":        {hers, back.RedirectURL + "?code=c", http.StatusBadRequest},
		"the SDK's state": {hers, back.RedirectURL + "?code=c&state=sdk-state", http.StatusBadRequest},
		"a changed state": {hers, come[:len(come)-1] + "_", http.StatusBadRequest},
		"no such page":    {hers, gateway.URL + "/login/" + strings.Repeat("A", 26), http.StatusNotFound},
	} {
		if status, text := visit(t, try.browser, try.address); status != try.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := visit(t, hers, come); status != http.StatusOK {
		t.Errorf("her browser: %d %s", status, text)
	}
	if status, _ := visit(t, hers, come); status != http.StatusBadRequest {
		t.Errorf("once more: %d", status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := back.wait(ctx); err != nil || r.Code != "c" || r.State != "sdk-state" {
		t.Errorf("the result: %+v, %v", r, err)
	}
}

// visit opens an address in a browser.
func visit(t *testing.T, browser *http.Client, address string) (status int, page string) {
	t.Helper()
	resp, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}
