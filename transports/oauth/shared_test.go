package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A replica is a connection to the shared state, with its store of logins.
type replica struct {
	*memkv.Connection
	bucket records.Bucket
	store  *logins.Store
}

func newReplica(t *testing.T, memory *memkv.Memory, keys *seal.Keys, hold time.Duration) replica {
	t.Helper()
	c := memory.Connect()
	bucket, err := c.Bucket(t.Context(), "logins")
	if err != nil {
		t.Fatal(err)
	}
	return replica{c, bucket, logins.NewShared(bucket, keys, hold, slog.New(slog.DiscardHandler))}
}

// While NATS elects a leader, a server without a login works as usual, and requests to a server
// with a login wait. Neither fails with a required login.
func TestRequestsWhileTheStateIsCutOff(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	locked := serverOf(as, nil)
	free := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(free.Close)
	open := schema.Server{Name: "open", Transport: schema.StreamableHTTP, URL: free.URL}
	memory, keys := memkv.New(), seal.Random()
	a, b := newReplica(t, memory, keys, logins.LockTime), newReplica(t, memory, keys, logins.LockTime)
	if _, err := flowFor(t, a.store, locked).Run(deadline(t)); err != nil {
		t.Fatalf("login: %v", err)
	}

	b.Cut()
	client, session := clientFor(t, b.store, open)
	session.unreachableSince = time.Now().Add(-logins.WaitTime) // as if it had been unreachable for so long
	wantStatus(t, client, open, "{}", http.StatusOK)

	client, session = clientFor(t, b.store, locked)
	session.unreachableSince = time.Now().Add(-logins.WaitTime)
	_, err := client.Post(locked.URL, "application/json", strings.NewReader("{}"))
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok || failure.Code != transports.CodeNotPlaced || failure.Outcome != transports.NotSent || failure.Login {
		t.Errorf("a server with a login: %v", err)
	}

	client, _ = clientFor(t, b.store, locked)
	time.AfterFunc(logins.WaitTime/10, b.Heal)
	wantStatus(t, client, locked, "{}", http.StatusOK)
}

// Two replicas send many requests each with an expired token. They make one refresh, although a
// refresh token is valid once.
func TestOneRefreshForAllReplicas(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	memory, keys := memkv.New(), seal.Random()
	const hold = 30 * time.Minute // so that a slow machine loses no lock
	replicas := []replica{newReplica(t, memory, keys, hold), newReplica(t, memory, keys, hold)}
	if _, err := flowFor(t, replicas[0].store, server).Run(deadline(t)); err != nil {
		t.Fatalf("login: %v", err)
	}
	for round := range 3 {
		var clients []*http.Client
		for _, r := range replicas {
			client, _ := clientFor(t, r.store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			clients = append(clients, client)
		}
		as.Expire()
		before := as.Count("refresh")
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				resp, err := clients[i%len(clients)].Post(server.URL, "application/json", bytes.NewReader([]byte("{}")))
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				if _, err := discard(resp); err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("request %d: status %d, %v", i, resp.StatusCode, err)
				}
			})
		}
		all.Wait()
		if got := as.Count("refresh") - before; got != 1 {
			t.Errorf("round %d: %d refreshes, want 1", round, got)
		}
	}
	if as.Count("reuse") != 0 || as.Count("authorize") != 1 {
		t.Errorf("%d refresh tokens used twice, %d logins", as.Count("reuse"), as.Count("authorize"))
	}
}

// A writeless bucket can be read but not written, as while NATS has no leader.
type writeless struct{ records.Bucket }

func (b writeless) WithTTL(time.Duration) records.Bucket { return b }

func (writeless) Create(context.Context, string, []byte) (uint64, error) {
	return 0, fmt.Errorf("%w: no leader", records.ErrUnavailable)
}

func (writeless) Update(context.Context, string, []byte, uint64) (uint64, error) {
	return 0, fmt.Errorf("%w: no leader", records.ErrUnavailable)
}

// An unreachable state of the cluster is not reported as a fault of the server. A token that is
// still valid is used meanwhile.
func TestRefreshWhileTheStateIsCutOff(t *testing.T) {
	t.Parallel()
	memory, keys := memkv.New(), seal.Random()
	r := newReplica(t, memory, keys, logins.LockTime)
	server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: "https://web.example.test/mcp"}
	begin := func(store *logins.Store) *Session { return NewSessions(LoginOptions{Store: store}).For(server, "") }
	notPlaced := func(what string, token string, err error) {
		t.Helper()
		failure, ok := errors.AsType[*transports.Failure](err)
		if !ok || token != "" || failure.Code != transports.CodeNotPlaced || failure.Outcome != transports.NotSent || failure.Login {
			t.Errorf("%s: %q, %v", what, token, err)
		}
	}
	expired := aLogin()
	expired.Expires = time.Now().Add(-time.Minute)
	session := begin(logins.NewShared(writeless{r.bucket}, keys, logins.LockTime, slog.New(slog.DiscardHandler)))
	if err := r.store.Save(session.key, expired); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"without the lock", "in the pause after that"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*logins.Pause)
		token, err := session.renewOnce(ctx, "")
		cancel()
		notPlaced(what, token, err)
	}

	session = begin(r.store)
	soon := aLogin()
	soon.Issued, soon.Expires = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second)
	if err := r.store.Save(session.key, soon); err != nil {
		t.Fatal(err)
	}
	if _, err := session.load(); err != nil {
		t.Fatal(err)
	}
	r.Cut()
	session.unreachableSince = time.Now().Add(-logins.WaitTime) // as if it had been unreachable for so long
	if token, err := session.token(t.Context()); err != nil || token != soon.AccessToken {
		t.Errorf("a token that is still good: %q, %v", token, err)
	}
	token, err := session.renewOnce(t.Context(), soon.AccessToken)
	notPlaced("a token that was rejected", token, err)
	token, err = session.stepUp(soon.AccessToken, []string{"write"})
	notPlaced("a scope that is missing", token, err)
}

// If a lock is held for too long, only the first request of a session waits for it.
func TestPauseAfterALockThatIsHeld(t *testing.T) {
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	server.Name, server.URL = "web", as.URL
	store := loggedIn(t, server)
	age(t, store, server, -time.Second)
	_, unlock, err := store.Lock(deadline(t), logins.KeyOf(server))
	if err != nil {
		t.Fatal(err)
	}
	_, session := clientFor(t, store, server)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := session.renewOnce(short, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	next, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := session.renewOnce(next, ""); err == nil || !strings.Contains(err.Error(), "the next is due in") {
		t.Errorf("got %v", err)
	}
	unlock()
	session.mu.Lock()
	session.retryAt = time.Time{} // the pause is over
	session.mu.Unlock()
	if _, err := session.renewOnce(deadline(t), ""); err != nil || as.Count("refresh") != 1 {
		t.Errorf("got %v, %d refreshes", err, as.Count("refresh"))
	}
}
