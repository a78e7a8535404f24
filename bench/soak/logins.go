package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/mcptest/authserver"
)

const (
	loginHosts   = 4  // share the logins
	loginServers = 10 // with one login each
	loginCalls   = 2  // of each host to each server at once
	// loginPause is a little longer than the time for which dynmcp does not refresh a
	// new token.
	loginPause = 11 * time.Second
)

// lockedServer starts a server that requires a login, and returns its address.
func lockedServer() (as *authserver.Server, base string, stop func()) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // a GET has none
		hello(w, m.ID, m.Method)
	}))
	front := httptest.NewUnstartedServer(nil)
	base = "http://" + front.Listener.Addr().String()
	as = authserver.New(base, authserver.ServerOptions{MCP: behind.URL, Secret: true, Scopes: []string{"read"}})
	front.Config.Handler = as
	front.Start()
	return as, base, func() { front.Close(); behind.Close() }
}

// logins invalidates n access tokens of dynmcps that share logins, always those of all
// servers at once. After every fifth time, it revokes the logins.
func (s *soak) logins(n int) error {
	began := time.Now()
	as, base, stop := lockedServer()
	defer stop()
	home, err := os.MkdirTemp(s.dir, "home")
	if err != nil {
		return err
	}
	l := &loginHolders{soak: s, as: as, env: []string{"HOME=" + home, "TMPDIR=" + home, "DYNMCP_KEYRING=off",
		"XDG_CACHE_HOME=" + home + "/cache", "XDG_CONFIG_HOME=" + home + "/config", "XDG_STATE_HOME=" + home + "/state", "XDG_DATA_HOME=" + home + "/data"}}
	var entries []entry
	for i := range loginServers {
		entries = append(entries, entry{name: lockedName(i), fields: map[string]any{"url": base + "/mcp", "description": "Locked"}})
	}
	l.path, err = s.config(setting{entries: entries})
	if err != nil {
		return err
	}
	for range loginHosts {
		h, err := s.launch(setting{path: l.path, level: "debug", dir: home, env: l.env, keep: true})
		if err != nil {
			return err
		}
		defer h.End()
		l.hosts = append(l.hosts, h)
	}
	if err := l.locked(); err != nil {
		return err
	}
	taken := 0
	for round := 1; taken < n; round++ {
		time.Sleep(loginPause)
		as.Expire()
		taken += loginServers
		if err := l.calls(false); err != nil {
			return err
		}
		if round%5 == 0 {
			as.Revoke()
			if err := l.locked(); err != nil {
				return err
			}
		}
	}
	state := as.State()
	a, err := l.search(state, home)
	if err != nil {
		return err
	}
	fmt.Printf("logins: %d calls of %d dynmcp in %v, %d failed; %d logins, %d tokens taken, %d refreshes, %d refresh tokens used twice; %d secrets, %d hits in %d KB that dynmcp wrote\n",
		l.made, loginHosts, rounded(time.Since(began)), l.failed, l.loggedIn, taken, state.Counts["refresh"], state.Counts["reuse"], len(a.canaries), a.hits, a.searched>>10)
	s.Must("failed calls", l.failed, 0)
	s.Must("refreshes", state.Counts["refresh"], taken)
	s.Must("refresh tokens used twice", state.Counts["reuse"], 0)
	s.Must("logins", state.Counts["authorize"], l.loggedIn)
	s.Must("hits", a.hits, 0)
	return nil
}

// A loginHolders is several dynmcp that share logins.
type loginHolders struct {
	*soak
	as    *authserver.Server
	path  string // of the config
	env   []string
	hosts []*host

	made, failed, loggedIn int
}

// search ends the dynmcps and looks for secrets of the logins in everything that they wrote.
func (l *loginHolders) search(state authserver.State, home string) (*canarySearch, error) {
	a := &canarySearch{soak: l.soak}
	for _, secret := range append(state.Secrets, state.Passing...) {
		kind, _, _ := strings.Cut(secret, "-")
		a.canaries = append(a.canaries, canary{kind, secret, [2]string{secret, secret}})
	}
	for i, h := range l.hosts {
		a.host = h
		a.commandLines()
		if i == 0 {
			h.Quit()
		} else if err := h.Stop(); err != nil {
			return nil, err
		}
		a.search("stderr", h.Stderr.String(), a.canaries)
		l.Must("processes left", h.remaining(), 0)
		for _, line := range h.Said {
			a.search("what the host was told", line, a.canaries)
		}
	}
	if err := a.files(home, "logins"); err != nil {
		return nil, err
	}
	return a, nil
}

func lockedName(i int) string { return fmt.Sprintf("locked%d", i) }

// locked checks that calls ask for a login, logs in to all servers, and calls again.
func (l *loginHolders) locked() error {
	if err := l.calls(true); err != nil {
		return err
	}
	for i := range loginServers {
		if err := l.logIn(lockedName(i)); err != nil {
			return err
		}
	}
	return l.calls(false)
}

// calls makes calls in all dynmcp at once and counts wrong answers. If out is true, the
// answers must tell how to log in, or else the calls must succeed.
func (l *loginHolders) calls(out bool) error {
	first := l.made
	for _, h := range l.hosts {
		for i := range loginCalls * loginServers {
			h.call(l.made, lockedName(i%loginServers)+"/echo", nonce(l.made))
			l.made++
		}
	}
	for _, h := range l.hosts {
		for range loginCalls * loginServers {
			a, err := h.Answer()
			if err != nil {
				return fmt.Errorf("calls from %d on: %w", first, err)
			}
			if asked := a.Result.IsError && strings.Contains(a.Line, `run \"dynmcp login locked`); asked != out || a.Result.IsError != out {
				if l.failed++; l.failed <= 5 {
					fmt.Printf("  logged out: %t: %.300s\n", out, strings.TrimSpace(a.Line))
				}
			}
		}
	}
	return nil
}

func (l *loginHolders) logIn(server string) error {
	cmd := exec.Command(l.dynmcp, "login", server, "--no-browser", "-c", l.path)
	cmd.Env = append(os.Environ(), l.env...)
	l.loggedIn++
	return hosts.LogIn(cmd)
}
