package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A replica is a connection to the shared state, with its store of logins.
type replica struct {
	*memkv.Connection
	bucket records.Bucket
	store  *LoginStore
}

func newReplica(t *testing.T, memory *memkv.Memory, keys *seal.Keys) replica {
	t.Helper()
	c := memory.Connect()
	bucket, err := c.Bucket(t.Context(), "logins")
	if err != nil {
		t.Fatal(err)
	}
	return replica{c, bucket, NewShared(bucket, keys, slog.New(slog.DiscardHandler))}
}

func TestSharedStore(t *testing.T) {
	memory, keys := memkv.New(), seal.Random()
	a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
	if l, err := b.store.Load(aKey); l != nil || err != nil {
		t.Fatalf("at first there is %+v, %v", l, err)
	}
	first, second := aLogin(), aLogin()
	second.Issuer, second.Issued, second.AccessToken = "https://other.example.test", first.Issued.Add(time.Second), "other-s3cret"
	for _, l := range []*Login{first, second} {
		if err := a.store.Save(aKey, l); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := b.store.Load(aKey); err != nil || l == nil || !reflect.DeepEqual(l.Secrets, second.Secrets) || l.Issuer != second.Issuer {
		t.Errorf("got %+v, %v", l, err)
	}
	if l, err := b.store.Peek(aKey); err != nil || l == nil || !reflect.DeepEqual(l.Secrets, Secrets{}) || !l.HasToken || !l.Renews {
		t.Errorf("without secrets it is %+v, %v", l, err)
	}
	if all, err := b.store.LoadAll(aKey); err != nil || len(all) != 2 || !reflect.DeepEqual(all[1].Secrets, first.Secrets) {
		t.Errorf("all are %+v, %v", all, err)
	}
	e, err := a.bucket.Get(t.Context(), a.store.backend.(*shared).record("login", aKey))
	if err != nil || bytes.Contains(e.Value, []byte("s3cret")) || bytes.Contains(e.Value, []byte("example")) {
		t.Errorf("the record is readable: %q, %v", e.Value, err)
	}
	if l, err := newReplica(t, memory, seal.Random()).store.Load(aKey); l != nil || err != nil {
		t.Errorf("with another key it is %+v, %v", l, err)
	}
	other := aKey
	other.Client = "another"
	// A record under the name of another is not opened.
	if _, err := a.bucket.Put(t.Context(), a.store.backend.(*shared).record("login", other), e.Value); err != nil {
		t.Fatal(err)
	}
	if l, err := a.store.Load(other); l != nil || err != nil {
		t.Errorf("the login of another client is %+v, %v", l, err)
	}
	if was, err := b.store.Delete(aKey); !was || err != nil {
		t.Errorf("deleted: %t, %v", was, err)
	}
	if was, err := a.store.Delete(aKey); was || err != nil {
		t.Errorf("deleted again: %t, %v", was, err)
	}
}

// The lock of a replica that is cut off expires after some seconds, its context before that.
func TestLockOfAReplicaThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
		held, unlock, err := a.store.Lock(t.Context(), aKey)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), lockValid-time.Second)
		defer cancel()
		if _, _, err := b.store.Lock(short, aKey); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("two have the lock: %v", err)
		}
		if held.Err() != nil {
			t.Fatal("the replica has lost its lock")
		}

		// It expires while no replica can reach the state.
		got := make(chan time.Time)
		go func() {
			mine, unlock, err := b.store.Lock(t.Context(), aKey)
			if err != nil || mine.Err() != nil {
				t.Errorf("lock: %v, %v", err, mine)
			}
			got <- time.Now()
			unlock()
		}()
		a.Cut()
		b.Cut()
		time.Sleep(time.Minute)
		if held.Err() == nil {
			t.Error("after a minute without the state, the replica still has its lock")
		}
		b.Heal()
		begin := time.Now()
		if took := (<-got).Sub(begin); took > time.Second {
			t.Errorf("the lock was free after %s", took)
		}
		a.Heal()
		unlock() // has no effect on the lock of another replica
		again, unlock, err := a.store.Lock(t.Context(), aKey)
		if err != nil || again.Err() != nil {
			t.Fatal(err)
		}
		unlock()
		synctest.Wait()
		if again.Err() == nil {
			t.Error("the lock is held after unlock")
		}
	})
}

// Save retries while the state is unreachable.
func TestSaveOutlastsACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
		a.Cut()
		time.AfterFunc(saveTime/2, a.Heal)
		if err := a.store.Save(aKey, aLogin()); err != nil {
			t.Fatal(err)
		}
		if l, err := b.store.Load(aKey); err != nil || l == nil {
			t.Errorf("got %+v, %v", l, err)
		}
	})
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
	a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
	if _, err := flowFor(t, a.store, locked).Run(deadline(t)); err != nil {
		t.Fatalf("login: %v", err)
	}

	b.Cut()
	client, session := clientFor(t, b.store, open)
	session.unreachableSince = time.Now().Add(-storeTime) // as if it had been unreachable for so long
	wantStatus(t, client, open, "{}", http.StatusOK)

	client, session = clientFor(t, b.store, locked)
	session.unreachableSince = time.Now().Add(-storeTime)
	_, err := client.Post(locked.URL, "application/json", strings.NewReader("{}"))
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok || failure.Code != transports.CodeNotPlaced || failure.Outcome != transports.NotSent || failure.Login {
		t.Errorf("a server with a login: %v", err)
	}

	client, _ = clientFor(t, b.store, locked)
	time.AfterFunc(storeTime/10, b.Heal)
	wantStatus(t, client, locked, "{}", http.StatusOK)
}

// Replicas that wait for the lock of a dead one get it one after the other.
func TestLockOfADeadReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		dead := newReplica(t, memory, keys)
		_, unlock, err := dead.store.Lock(t.Context(), aKey)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		dead.Cut()
		var holders atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			store := newReplica(t, memory, keys).store
			all.Go(func() {
				held, unlock, err := store.Lock(t.Context(), aKey)
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two have the lock")
				}
				time.Sleep(lockValid - time.Second)
				if held.Err() != nil {
					t.Error("the replica has lost its lock")
				}
				holders.Add(-1)
				unlock()
			})
		}
		all.Wait()
	})
}

// A broken record in place of a lock does not prevent a refresh.
func TestLockThatIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(t, memkv.New(), seal.Random())
		if _, err := r.bucket.Put(t.Context(), r.store.backend.(*shared).record("lock", aKey), []byte("\x00{")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), renewTime)
		defer cancel()
		_, unlock, err := r.store.Lock(ctx, aKey)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}

// Two replicas send many requests each with an expired token. They make one refresh, although a
// refresh token is valid once.
func TestOneRefreshForAllReplicas(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	memory, keys := memkv.New(), seal.Random()
	replicas := []replica{newReplica(t, memory, keys), newReplica(t, memory, keys)}
	for _, r := range replicas { // so that a slow machine loses no lock
		s := r.store.backend.(*shared)
		s.valid, s.ttl = 30*time.Minute, time.Hour
	}
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
	r := newReplica(t, memory, keys)
	server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: "https://web.example.test/mcp"}
	begin := func(store *LoginStore) *Session { return NewSessions(LoginOptions{Store: store}).For(server, "") }
	notPlaced := func(what string, token string, err error) {
		t.Helper()
		failure, ok := errors.AsType[*transports.Failure](err)
		if !ok || token != "" || failure.Code != transports.CodeNotPlaced || failure.Outcome != transports.NotSent || failure.Login {
			t.Errorf("%s: %q, %v", what, token, err)
		}
	}
	expired := aLogin()
	expired.Expires = time.Now().Add(-time.Minute)
	session := begin(NewShared(writeless{r.bucket}, keys, slog.New(slog.DiscardHandler)))
	if err := r.store.Save(session.key, expired); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"without the lock", "in the pause after that"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*lockPause)
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
	session.unreachableSince = time.Now().Add(-storeTime) // as if it had been unreachable for so long
	if token, err := session.token(t.Context()); err != nil || token != soon.AccessToken {
		t.Errorf("a token that is still good: %q, %v", token, err)
	}
	token, err := session.renewOnce(t.Context(), soon.AccessToken)
	notPlaced("a token that was rejected", token, err)
	token, err = session.stepUp(soon.AccessToken, []string{"write"})
	notPlaced("a scope that is missing", token, err)
}
