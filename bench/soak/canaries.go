package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// A canarySearch is a dynmcp whose config is full of canaries, and the results of a search
// for them.
type canarySearch struct {
	*soak
	host     *host
	canaries []canary
	searched int // bytes
	hits     int
}

// canaries lets servers that know secrets repeat them and fail in all ways. Then it looks
// for the secrets in everything that dynmcp has written. It does this twice: first dynmcp
// ends in the normal way, then by SIGQUIT, which prints all stacks.
func (s *soak) canaries() error {
	for _, crash := range []bool{false, true} {
		a := &canarySearch{soak: s, canaries: newCanaries("ENV", "LEAKED", "ARG", "COMMAND", "CWD", "BEARER", "API_KEY", "COOKIE", "QUERY", "USERINFO", "PATH_PART",
			"CLIENT_SECRET", "GATEWAY", "SPOKEN", "CODED", "LONG_LINE")}
		failures, err := a.once(crash)
		if err != nil {
			return err
		}
		fmt.Printf("canaries: %d in %d failed calls; %d hits in %d KB that dynmcp wrote, ended by SIGQUIT: %t\n",
			len(a.canaries), failures, a.hits, a.searched>>10, crash)
		s.Must("hits", a.hits, 0)
	}
	return nil
}

// search counts the canaries in text and prints the text around the first 50.
func (a *canarySearch) search(where, text string, all []canary) {
	a.searched += len(text)
	for _, c := range all {
		if at := c.in(text); at >= 0 {
			if a.hits++; a.hits > 50 {
				continue
			}
			fmt.Printf("  %s shows %s: …%q…\n", where, c.name, text[max(0, at-100):min(len(text), at+100)])
		}
	}
}

// once does one run and returns the number of failed calls.
func (a *canarySearch) once(crash bool) (failures int, err error) {
	echoing := httptest.NewServer(http.HandlerFunc(repeat))
	defer echoing.Close()
	home, err := os.MkdirTemp(a.dir, "home")
	if err != nil {
		return 0, err
	}
	nobody, err := unheard()
	if err != nil {
		return 0, err
	}
	entries := append(a.local(), a.remote(echoing.URL, nobody)...)
	a.host, err = a.launch(setting{
		entries: entries, level: "debug", dir: home, keep: true,
		more: map[string]any{"gateway": map[string]string{"token": "${GATEWAY}"}},
		env: append(environ(a.canaries), "HOME="+home, "TMPDIR="+home,
			"XDG_CACHE_HOME="+home+"/cache", "XDG_CONFIG_HOME="+home+"/config", "XDG_STATE_HOME="+home+"/state", "XDG_DATA_HOME="+home+"/data"),
	})
	if err != nil {
		return 0, err
	}
	defer a.host.End()
	for _, e := range entries {
		n, err := a.provoke(e)
		if err != nil {
			return failures, fmt.Errorf("%s: %w", e.name, err)
		}
		if failures += n; n == 0 {
			return failures, fmt.Errorf("%s: it did not fail", e.name)
		}
	}
	a.commandLines()
	for _, line := range a.host.Said {
		a.search("what the host was told", line, a.canaries)
	}
	if err := a.alive(); err != nil {
		return failures, err
	}
	if crash {
		a.host.Quit()
	} else if err := a.host.Stop(); err != nil {
		return failures, err
	}
	a.search("stderr", a.host.Stderr.String(), a.canaries)
	a.Must("processes left", a.host.remaining(), 0)
	return failures, a.files(home, "")
}

// local returns the servers of the step calls with all canaries in their environment,
// and some servers that do not start.
func (a *canarySearch) local() []entry {
	env := map[string]string{}
	for _, c := range a.canaries {
		env[c.name] = "${" + c.name + "}"
	}
	all := []entry{
		{name: "argument", args: []string{"${ARG}"}, fields: map[string]any{}},
		{name: "leaks", args: []string{"-fault", "exit-leak:LEAKED"}, fields: map[string]any{"env": env}},
		{name: "command", fields: map[string]any{"command": "/nowhere/${COMMAND}"}},
		{name: "directory", fields: map[string]any{"cwd": "/nowhere/${CWD}"}},
	}
	for _, e := range callServers() {
		e.fields = maps.Clone(e.fields)
		if e.fields == nil {
			e.fields = map[string]any{}
		}
		e.fields["env"] = env
		if e.fields["timeout"] != nil {
			e.fields["timeout"] = "50ms" // here any call may run into it
		}
		all = append(all, e)
	}
	for i := range all {
		all[i].fields["description"] = "Fails"
	}
	return all
}

// remote returns servers that repeat one of their headers, or the whole request.
func (a *canarySearch) remote(base, nobody string) []entry {
	all := []entry{
		{name: "userinfo", fields: map[string]any{"url": "http://user:${USERINFO}@" + nobody + "/"}},
		{name: "oauth", fields: map[string]any{"url": base + "/early/login/", "auth": map[string]string{"client_id": "x", "client_secret": "${CLIENT_SECRET}"}}},
	}
	headers := map[string]string{"Authorization": "Bearer ${BEARER}", "X-Api-Key": "${API_KEY}", "Cookie": "session=${COOKIE}", "": ""}
	for _, when := range []string{"early", "late"} {
		for echo := range echoes {
			for header, value := range headers {
				fields := map[string]any{"url": base + "/" + when + "/" + echo + "/?key=${QUERY}&part=${PATH_PART}"}
				if header != "" {
					fields["headers"] = map[string]string{header: value, "X-Show": header}
				}
				all = append(all, entry{name: strings.ToLower(strings.Trim(when+"-"+echo+"-"+header, "-")), fields: fields})
			}
		}
	}
	for i := range all {
		all[i].fields["description"] = "Fails"
	}
	return all
}

// unheard returns an address where nobody listens.
func unheard() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// provoke makes a server repeat all secrets and fail, and returns the number of failures.
// Only arguments of the tool stderr, which does not return them, have secrets. A secret in
// an answer therefore does not come from the call.
func (a *canarySearch) provoke(e entry) (failures int, err error) {
	ask := func(tool, arguments string) error {
		a.host.ask(`"provoked"`, tool, arguments)
		got, err := a.host.Await("provoked", hosts.NoOther)
		if err == nil && got.Result.IsError {
			failures++
		}
		return err
	}
	err = ask("load_mcp", load(e.name))
	if e.fields["env"] != nil && err == nil {
		for _, c := range a.canaries {
			lines := append([]string{strings.Repeat("x", 4<<10-8) + c.value}, spoken(c.value)...)
			err = errors.Join(err,
				ask("use_tool", use(e.name+"/stderr", fmt.Sprintf(`{"text":%s}`, quote(strings.Join(lines, "\n"))))),
				ask("use_tool", use(e.name+"/echo", `{"nonce":1}`)))
		}
		err = errors.Join(err, ask("use_tool", use(e.name+"/crash", `{}`)), ask("load_mcp", load(e.name)))
	}
	for range 3 {
		err = errors.Join(err, ask("use_tool", use(e.name+"/echo", `{"nonce":1}`)), ask("load_mcp", load(e.name)))
	}
	return failures, err
}

// alive checks that the server has all secrets and that dynmcp passes them unchanged in
// results.
func (a *canarySearch) alive() error {
	for _, c := range a.canaries {
		a.host.ask(`"alive"`, "use_tool", use("good/env", fmt.Sprintf(`{"name":%q}`, c.name)))
		got, err := a.host.Await("alive", hosts.NoOther)
		if err != nil {
			return err
		}
		if len(got.Result.Content) == 0 || got.Result.Content[0].Text != c.value {
			return fmt.Errorf("the server's %s is not %q: %.300s", c.name, c.value, got.Line)
		}
	}
	return nil
}

// commandLines searches the command lines of dynmcp and its descendants. The config puts
// ARG into one, so it is not searched for.
func (a *canarySearch) commandLines() {
	but := slices.DeleteFunc(slices.Clone(a.canaries), func(c canary) bool { return c.name == "ARG" })
	for _, pid := range procs.Marked(a.host.marker) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // absent if the process has ended
		a.search("a command line", string(line), but)
	}
}

// files searches all regular files below home, except in directories with the name in but, which
// may have secrets.
func (a *canarySearch) files(home, but string) error {
	return filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == but:
			return filepath.SkipDir
		case err != nil || !d.Type().IsRegular(): // such as a socket
			return err
		}
		text, err := os.ReadFile(path)
		a.search(path, string(text), a.canaries)
		return err
	})
}
