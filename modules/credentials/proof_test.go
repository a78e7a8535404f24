package credentials_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// The load of TestNoCredentialIsCrossed. DYNMCP_CREDENTIAL_CALLS is another number of calls.
const (
	manyUsers = 50
	manyCalls = 20_000
)

// subjectOf returns the user of a token of the issuer.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Subject
}

// An issuer issues the tokens with which users call the gateway.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := any(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
		if r.URL.Path == "/keys" {
			said = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
		}
		_ = json.NewEncoder(w).Encode(said)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) token(t *testing.T, user string) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":"tests","sub":%q,"exp":%d}`, i.URL, user, time.Now().Add(time.Hour).Unix()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A world is the services, the replicas of a gateway, and the state that these share.
type world struct {
	t        *testing.T
	issuer   *issuer
	services []*service
	text     string // of cfg
	cfg      *schema.Config
	listings string // the directory of stored listings, "" for none
	memory   *memkv.Memory
	watched  func(records.Bucket) records.Bucket // of the logins of replicas; may be nil
	keys     *seal.Keys
	store    *logins.Store // of the operator
	replicas [2]atomic.Pointer[replica]
}

// A replica is a gateway. A crash takes all of it but what is in the shared state.
type replica struct {
	agg    *aggregator.Aggregator
	server *httptest.Server
	close  func()
}

func newWorld(t *testing.T, life time.Duration) *world {
	return newWorldOf(t, life, `"startup_wait": "5s"`,
		`"credentials": "user", "auth": {"client_id": "gw", "client_secret": "s"}`,
		`"credentials": "user", "auth": {"client_id": "gw", "client_secret": "s"}`,
		`"credentials": "user", "auth": {"client_id": "gw", "client_secret": "s"}`,
		`"credentials": "user", "headers": {"Authorization": "none", "X-Key": "${user:KEY}"}`,
		`"credentials": {"exchange": {"token_url": "URL/token", "client_id": "gw", "client_secret": "s"}}`)
}

// newWorldOf returns a world with a service for each part of an entry.
func newWorldOf(t *testing.T, life time.Duration, config string, parts ...string) *world {
	w := &world{t: t, issuer: newIssuer(t), memory: memkv.New(), keys: seal.Random()}
	var entries []string
	for i, credentials := range parts {
		s := newService(t, fmt.Sprintf("s%d", i), life)
		w.services = append(w.services, s)
		entries = append(entries, fmt.Sprintf(`%q: {"url": "%s/mcp", "description": "Says who calls.", %s}`, s.name, s.URL, strings.ReplaceAll(credentials, "URL", s.URL)))
	}
	w.text = `{` + config + `, "mcp": {` + strings.Join(entries, ",\n") + `}}`
	w.cfg = w.config(w.text)
	w.store = w.connect()
	for i := range w.replicas {
		w.start(i)
	}
	t.Cleanup(func() {
		for i := range w.replicas {
			w.replicas[i].Load().close()
		}
	})
	return w
}

func (w *world) config(text string) *schema.Config {
	cfg, err := schema.ReadFiles(w.t.Context(), []string{mcptest.Config(w.t, text)}, schema.LoadOptions{}).Load()
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// connect returns the logins in the shared state.
func (w *world) connect() *logins.Store {
	connection := w.memory.Connect()
	w.t.Cleanup(func() { connection.Close() })
	bucket, err := connection.Bucket(context.Background(), "logins")
	if err != nil {
		w.t.Fatal(err)
	}
	if w.watched != nil {
		bucket = w.watched(bucket)
	}
	return logins.NewShared(bucket, w.keys, logins.LockTime, slog.New(slog.DiscardHandler))
}

// start starts a replica, in place of one that was closed.
func (w *world) start(i int) {
	store := w.connect()
	logins := login.Of(func() (*logins.Store, error) { return store, nil }, slog.New(slog.DiscardHandler))
	agg, err := aggregator.New(w.cfg, aggregator.Options{Version: "test", Logins: logins, Keys: seal.Random(), StoreDir: w.listings})
	if err != nil {
		w.t.Fatal(err)
	}
	names := agg.Directory()
	g := gateway.New(gateway.GatewayOptions{
		Open: func(edge gateway.Edge, user, server string, lasts bool) (*host.Session, func(context.Context)) {
			return agg.Open(edge, aggregator.Identity{User: user, Account: edge.Account(), Server: server, Persistent: lasts})
		},
		Named: names.Named, InputSchema: names.InputSchema, TreeKind: names.TreeKind, Unknown: names.Unknown,
		Health:       func(string) (gateway.Health, bool) { return gateway.Health{}, true },
		OAuth:        &gateway.OAuth{Issuers: []string{w.issuer.URL}, Audience: "tests", Callers: &logins.Callers},
		AllowedHosts: []string{"127.0.0.1"}, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20, MaxConnections: 1000,
	})
	agg.StartShared()
	server := httptest.NewServer(g)
	w.replicas[i].Store(&replica{agg, server, func() {
		server.CloseClientConnections()
		server.Config.Close()
		agg.Close()
		server.Close()
	}})
}

// principal returns the name of a user at the gateway.
func (w *world) principal(user string) string { return w.issuer.URL + " " + user }

// logIn stores a new login of a user at a service, as the flow of a login does.
func (w *world) logIn(s *service, user string) {
	server := w.server(s)
	key := logins.KeyOf(server).Of(w.principal(user))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, unlock, err := w.store.Lock(ctx, key)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer unlock()
	access, refresh := s.issue(user, true)
	l := &logins.Login{Server: s.name, Principal: key.Principal, Issuer: s.URL, Resource: server.URL, ClientID: "gw", TokenURL: s.URL + "/token", Issued: time.Now(), Expires: time.Now().Add(s.life)}
	l.AccessToken, l.RefreshToken = access, refresh
	if err := w.store.Save(key, l); err != nil {
		w.t.Error(err)
	}
}

func (w *world) server(s *service) schema.Server {
	for _, server := range w.cfg.Servers {
		if server.Name == s.name {
			return server
		}
	}
	panic("no such server")
}

// setKey stores what a user is called with at the service with a header.
func (w *world) setKey(user, version string) {
	if _, err := w.store.SetValue(context.Background(), w.principal(user), "KEY", "key-"+user+"/"+version); err != nil {
		w.t.Error(err)
	}
}

// A user calls the services through any replica.
type user struct {
	*world
	name, token string
	sessions    [2]string // at the replicas
	of          [2]*replica
	http        http.Client
	id          int
}

// post sends a message to a replica, and returns the answer and the session.
func (u *user) post(ctx context.Context, to *replica, session, message string) (answer, of string, status int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.server.URL+"/mcp", bytes.NewReader([]byte(message)))
	if err != nil {
		return "", "", 0
	}
	r.Header.Set("Authorization", "Bearer "+u.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := u.http.Do(r)
	if err != nil {
		return "", "", 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", "", 0
	}
	return string(text), resp.Header.Get("Mcp-Session-Id"), resp.StatusCode
}

// call calls a service through a replica. It returns "" if the replica did not answer.
func (u *user) call(ctx context.Context, at int, s *service) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	to := u.replicas[at].Load()
	if u.of[at] != to || u.sessions[at] == "" {
		_, session, status := u.post(ctx, to, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"proof","version":"1"}}}`)
		if status != http.StatusOK {
			return ""
		}
		u.of[at], u.sessions[at] = to, session
		u.post(ctx, to, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	u.id++
	answer, _, status := u.post(ctx, to, u.sessions[at], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"%s/whoami","tool_input":{}}}}`, u.id, s.name))
	if status != http.StatusOK {
		u.sessions[at] = ""
		return ""
	}
	return answer
}

var answered = regexp.MustCompile(`<([a-z0-9]+) at (s[0-9])>`)

// 50 users call 5 servers through 2 replicas that share a state, while logins are refreshed, revoked
// and ended, values change, servers forget their sessions and replicas crash. Each answer is for the
// user who asked, each session of a server is of one user, and no refresh token is used twice but for
// the crashes.
func TestNoCredentialIsCrossed(t *testing.T) {
	calls := manyCalls
	if text := os.Getenv("DYNMCP_CREDENTIAL_CALLS"); text != "" {
		if _, err := fmt.Sscan(text, &calls); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() || mcptest.RaceEnabled {
		calls /= 10
	}
	w := newWorld(t, 3*time.Second)
	names := make([]string, manyUsers)
	for i := range names {
		names[i] = fmt.Sprintf("u%d", i)
		for _, s := range w.services[:3] {
			w.logIn(s, names[i])
		}
		w.setKey(names[i], "0")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var good, failed, crashes, disturbed atomic.Int64
	var users, trouble sync.WaitGroup
	over := make(chan struct{})
	enough := func() bool { // on a quick machine the calls end before the first crash
		var refreshed int64
		for _, s := range w.services {
			refreshed += s.refreshed.Load()
		}
		return good.Load() >= int64(calls) && refreshed > 0 && (crashes.Load() > 0 || calls < manyCalls)
	}
	for i, name := range names {
		users.Go(func() {
			u := &user{world: w, name: name, token: w.issuer.token(t, name), http: http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}}
			defer u.http.CloseIdleConnections()
			for n := i; !enough() && ctx.Err() == nil; n++ {
				s := w.services[n%len(w.services)]
				answer := u.call(ctx, n/len(w.services)%2, s)
				m := answered.FindStringSubmatch(answer)
				switch {
				case m == nil:
					failed.Add(1)
				case m[1] != name || m[2] != s.name:
					t.Errorf("%s was answered as %s at %s, in place of %s", name, m[1], m[2], s.name)
					return
				default:
					good.Add(1)
				}
			}
		})
	}
	trouble.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if good.Load() < int64(n)*12 { // where calls are slow, their number counts
				n--
				continue
			}
			name, s := names[mathrand.N(manyUsers)], w.services[mathrand.N(3)]
			disturbed.Add(1)
			switch n % 6 {
			case 0, 1: // the server ends his login, and he logs in again
				s.revoke(name)
				time.Sleep(20 * time.Millisecond)
				w.logIn(s, name)
			case 2: // he ends it here
				if _, err := w.store.Delete(logins.KeyOf(w.server(s)).Of(w.principal(name))); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond)
				w.logIn(s, name)
			case 3, 4:
				w.setKey(name, fmt.Sprint(n))
			case 5: // rarely: dynmcp waits before it returns to a server that fails again and again
				if n%120 == 5 {
					w.services[n/120%len(w.services)].crash()
				}
			}
			if n%60 == 59 {
				w.replicas[n/60%2].Load().close()
				crashes.Add(1)
				w.start(n / 60 % 2)
			}
		}
	})
	users.Wait()
	close(over)
	trouble.Wait()

	var crossed, reused, refreshed int64
	for _, s := range w.services {
		crossed, reused, refreshed = crossed+s.crossed.Load(), reused+s.reused.Load(), refreshed+s.refreshed.Load()
	}
	t.Logf("%d calls answered, %d not; %d refreshes, %d tokens used twice, %d disturbances, %d crashes", good.Load(), failed.Load(), refreshed, reused, disturbed.Load(), crashes.Load())
	switch {
	case crossed > 0:
		t.Errorf("%d requests used the session of another user", crossed)
	case good.Load() < int64(calls):
		t.Errorf("only %d of %d calls were answered", good.Load(), calls)
	case failed.Load() > good.Load()/5:
		t.Errorf("%d calls failed, %d did not", failed.Load(), good.Load())
	case refreshed == 0 || calls >= manyCalls && crashes.Load() == 0:
		t.Error("nothing was refreshed, or nothing crashed")
	case reused > crashes.Load():
		t.Errorf("%d refresh tokens were used twice, in %d crashes", reused, crashes.Load())
	}
}
