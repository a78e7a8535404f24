package main_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// protected is an entry for a fake that serves HTTP behind an authorization server. That is a
// process as well, unless opts.Wrap is set.
func protected(t *testing.T, opts mcptest.AuthOptions, args ...string) (entry, *mcptest.AuthServer) {
	t.Helper()
	ledger := mcptest.NewLedger(t)
	opts.MCP = mcptest.ServeFake(t, append([]string{"-name", "web", "-ledger", ledger.Path}, args...)...).URL
	start := mcptest.StartAuthServer
	if opts.Wrap != nil {
		start = mcptest.NewAuthServer
	}
	as := start(t, opts)
	return entry{ledger, "web", map[string]any{"url": as.URL, "description": "Locked"}}, as
}

// output is what a command prints, on both streams, while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var loginPage = regexp.MustCompile(`(?m)^  (http\S+)$`)

// login runs dynmcp login and does what a person does in a browser. It returns what
// was printed.
func login(t *testing.T, env []string, args ...string) (printed string, err error) {
	t.Helper()
	return runLogin(t, env, append([]string{"--no-browser"}, args...)...)
}

// runLogin is login without --no-browser.
func runLogin(t *testing.T, env []string, args ...string) (printed string, err error) {
	t.Helper()
	cmd := exec.Command(mcptest.Dynmcp(t), append([]string{"login"}, args...)...)
	cmd.Env = env
	out := &output{more: make(chan struct{}, 1)}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for seen := false; ; {
		select {
		case err := <-ended:
			return out.String(), err
		case <-out.more:
			if page := loginPage.FindStringSubmatch(out.String()); page != nil && !seen {
				seen = true
				mcptest.Browse(t, page[1])
			}
		}
	}
}

// The browser is opened by the system's program for that, with the address for its one
// argument and no shell in between.
func TestLoginOpensTheBrowser(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program there is no file that can be put in its place")
	}
	e, _ := protected(t, mcptest.AuthOptions{Issuer: "/$(touch evil);a'b"})
	bin, opened := t.TempDir(), filepath.Join(t.TempDir(), "opened")
	for _, opener := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >'" + opened + ".part'\nmv '" + opened + ".part' '" + opened + "'\n"
		writeProgram(t, bin, opener, script)
	}
	env := append(mcptest.Environ(t), "DISPLAY=:0", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	printed, err := runLogin(t, env, "web", "-c", mcptest.Config(t, document([]entry{e})))
	if err != nil {
		t.Fatalf("login: %v\n%s", err, printed)
	}
	page := loginPage.FindStringSubmatch(printed)[1]
	contains(t, printed, "Log in to web in the browser. If it does not open, go to:")
	lacks(t, page, "$", ";", "(", "'")
	mcptest.Eventually(t, "the browser was opened", func() bool { _, err := os.Stat(opened); return err == nil })
	got, err := os.ReadFile(opened)
	if want := "1\n" + page + "\n"; err != nil || string(got) != want {
		t.Errorf("opened with %q, %v, want %q", got, err, want)
	}
}

func TestStepUp(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}, WriteFor: "write:all"})
	env := mcptest.Environ(t)
	config := mcptest.Config(t, document([]entry{e}))
	if printed, err := login(t, env, "web", "-c", config); err != nil {
		t.Fatalf("login: %v\n%s", err, printed)
	}
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: env})
	host.Initialize(handshake, nil)
	contains(t, use(host, "web/echo", `{"text":"read"}`).Raw, "read")
	contains(t, use(host, "web/echo", `{"text":"write"}`).Raw, `run \"dynmcp login web\": this needs the scopes write:all`)
	if printed, err := login(t, env, "web", "-c", config); err != nil || !strings.Contains(printed, "write:all") {
		t.Fatalf("login: %v\n%s", err, printed)
	}
	contains(t, use(host, "web/echo", `{"text":"write"}`).Raw, `"structuredContent":{"text":"write"}`)
	if as.Count("authorize") != 2 {
		t.Errorf("%d logins", as.Count("authorize"))
	}
}

func TestLoginOfAMachine(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{Client: "machine", Key: "key-of-machine", NoRegistration: true})
	e = e.with("auth", map[string]any{"grant": "client_credentials", "client_id": "machine", "client_secret": "${KEY}"})
	env := append(mcptest.Environ(t), "KEY=key-of-machine")
	config := mcptest.Config(t, document([]entry{e}))
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: env})
	host.Initialize(handshake, nil)
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, "hi")
	if as.Count("machine") != 1 {
		t.Errorf("%d logins", as.Count("machine"))
	}
	contains(t, runVerb(t, env, 1, "login", "web", "-c", config), "logs in by itself")
}

// The secrets of a login appear only in its file, both when everything works and when
// everything fails.
func TestSecretsOfALoginAreNotShown(t *testing.T) {
	t.Parallel()
	echoing := false // the token endpoint fails with all it was sent
	var mu sync.Mutex
	e, as := protected(t, mcptest.AuthOptions{Secret: true, Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !echoing || r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "" {
			return false
		}
		_ = r.ParseForm()
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"` + r.Form.Encode() + `","error_description":"` + r.Header.Get("Authorization") + r.Form.Get("refresh_token") + r.Form.Get("code") + `"}`))
		return true
	}})
	env := mcptest.Environ(t)
	config := mcptest.Config(t, document([]entry{e}))
	printed, err := login(t, env, "web", "-c", config)
	if err != nil {
		t.Fatalf("login: %v\n%s", err, printed)
	}
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config, "--log-level", "debug"}, Env: env})
	host.Initialize(handshake, nil)
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, "hi")
	as.Expire()
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, "hi")
	mu.Lock()
	echoing = true
	mu.Unlock()
	as.Expire()
	failed := use(host, "web/echo", `{"text":"hi"}`)
	contains(t, failed.Raw, "dynmcp login web")
	again, err := login(t, env, "web", "-c", config)
	if err == nil {
		t.Error("the login worked")
	}
	out := runVerb(t, env, 1, "logout", "web", "-c", config) // nothing is revoked
	listed := runVerb(t, env, 0, "ls", "-c", config)
	all := map[string]string{"login": printed, "second login": again, "logout": out, "ls": listed, "host": strings.Join(host.Lines(), "\n")}
	noSecretIn(t, as, host.Stderr(), all)
}
