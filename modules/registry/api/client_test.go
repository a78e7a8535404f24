package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

func serverJSON(name, version, description string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"version":%q,"description":%q%s}`, name, version, description, strings.Join(append([]string{""}, more...), ","))
}

func names(servers []api.Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Name+" "+s.Version+" "+s.Status)
	}
	return strings.Join(all, "; ")
}

func TestSearch(t *testing.T) {
	r := mcptest.ServeRegistry(t,
		serverJSON("io.example/weather", "1.0.0", "Weather by city."),
		serverJSON("io.example/weather", "1.1.0", "Weather by city and day."),
		serverJSON("io.example/sea-weather", "2.0.0", "Tides."),
		serverJSON("io.example/tides", "2.0.0", "Tides and weather of the sea."), // the API searches only names
		serverJSON("io.example/mail", "1.0.0", "Reads mail."),
	)
	r.Publish(serverJSON("io.example/old-weather", "0.9.0", "Weather by city."), "deprecated", "use\n\x1b[31mweather\u202e")
	r.Publish(serverJSON("io.example/gone-weather", "0.9.0", "Weather by city."), "deleted", "")
	c := &api.Client{Address: r.URL + "/"}
	for words, want := range map[string]string{
		"weather":        "io.example/sea-weather 2.0.0 active; io.example/weather 1.1.0 active; io.example/old-weather 0.9.0 deprecated",
		"Weather CITY":   "io.example/weather 1.1.0 active; io.example/old-weather 0.9.0 deprecated",
		"mail submarine": "io.example/mail 1.0.0 active",
		"submarine":      "",
	} {
		found, err := c.Search(t.Context(), []string{words})
		if err != nil || names(found) != want {
			t.Errorf("%s: got %s, %v", words, names(found), err)
		}
		for _, s := range found {
			if s.Status == api.Deprecated && strings.ContainsAny(s.Message, "\n\x1b\u202e") {
				t.Errorf("the message has control characters: %q", s.Message)
			}
		}
	}
	if _, err := c.Search(t.Context(), strings.Fields("a b c d e f")); err == nil {
		t.Error("six words are searched for")
	}
}

func TestPagesAreFollowed(t *testing.T) {
	r := mcptest.ServeRegistry(t)
	for i := range 250 {
		r.Publish(serverJSON(fmt.Sprintf("io.example/many-%03d", i), "1.0.0", "One of many."), "active", "")
	}
	c := &api.Client{Address: r.URL}
	if found, err := c.Search(t.Context(), []string{"many"}); err != nil || len(found) != 250 {
		t.Errorf("got %d, %v", len(found), err)
	}
	if n := len(r.Requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestGet(t *testing.T) {
	r := mcptest.ServeRegistry(t, serverJSON("io.example/a", "1.0.0+b.1", "A."), serverJSON("io.example/a", "2.0.0", "A."))
	r.Publish(serverJSON("io.example/gone", "1.0.0", "Gone."), "deleted", "")
	r.Handle("/v0.1/servers/io.example/told/versions/latest", says(deletedServer, serverJSON("io.example/told", "1.0.0", "Gone.")))
	c := &api.Client{Address: r.URL}
	for version, want := range map[string]string{"": "2.0.0", "2.0.0": "2.0.0", "1.0.0+b.1": "1.0.0+b.1"} {
		if s, err := c.Get(t.Context(), "io.example/a", version); err != nil || s.Version != want || s.From != r.URL {
			t.Errorf("%q: got %v, %v", version, s, err)
		}
	}
	for _, which := range [][2]string{{"io.example/a", "3.0.0"}, {"io.example/b", ""}, {"io.example/gone", ""}, {"io.example/told", ""}} {
		if s, err := c.Get(t.Context(), which[0], which[1]); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%v: got %v, %v", which, s, err)
		}
	}
}

// A cached page is requested again with its validator. It is used, with its age, while the
// registry cannot be reached.
func TestPagesAreKept(t *testing.T) {
	r := mcptest.ServeRegistry(t, serverJSON("io.example/a", "1.0.0", "A."))
	dir := filepath.Join(t.TempDir(), "kept")
	get := func() (*api.Client, string) {
		t.Helper()
		c := &api.Client{Address: r.URL, Dir: dir}
		s, err := c.Get(t.Context(), "io.example/a", "")
		if err != nil {
			t.Fatal(err)
		}
		return c, s.Version
	}
	get()
	c, _ := get()
	if all := r.Requests(); len(all) != 2 || !strings.HasSuffix(all[1], " 304") || c.Why != nil {
		t.Errorf("got %q, %v", all, c.Why)
	}
	r.Publish(serverJSON("io.example/a", "1.1.0", "A."), "active", "")
	if _, version := get(); version != "1.1.0" {
		t.Errorf("got %s after a newer one was published", version)
	}
	for _, status := range []int{500, 429} {
		r.Handle("/v0.1/servers/io.example/a/versions/latest", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if c, version := get(); version != "1.1.0" || c.Why == nil || !strings.Contains(c.Why.Error(), fmt.Sprint(status)) || c.Stale <= 0 {
			t.Errorf("%d: got %s, %v, %v", status, version, c.Why, c.Stale)
		}
	}
	r.Close()
	if c, version := get(); version != "1.1.0" || c.Why == nil || c.Stale <= 0 || c.Stale > time.Minute {
		t.Errorf("got %s, %v, %v", version, c.Why, c.Stale)
	}
	if _, err := (&api.Client{Address: r.URL, Dir: dir}).Get(t.Context(), "io.example/b", ""); err == nil {
		t.Error("a page that was never fetched is returned")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files { // a broken file counts as absent
		if err := os.WriteFile(file, []byte(`{"Address":"x"`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (&api.Client{Address: r.URL, Dir: dir}).Get(t.Context(), "io.example/a", ""); err == nil {
		t.Error("a broken file is used")
	}
}

// A page without validators is used for some minutes without asking.
func TestPagesWithoutValidators(t *testing.T) {
	r := mcptest.ServeRegistry(t)
	asked := 0
	r.Handle("/v0.1/servers", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprintf(w, `{"servers":[{"server":%s}]}`, serverJSON("io.example/a", "1.0.0", "A."))
	})
	dir := t.TempDir()
	for range 2 {
		if found, err := (&api.Client{Address: r.URL, Dir: dir}).Search(t.Context(), []string{"a"}); err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want 1", asked)
	}
}

// A hostile registry causes an error, and nothing else.
func TestHostileRegistries(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	defer end()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another server": {says(`{"server":%s}`, serverJSON("io.example/b", "1.0.0", "B.")), "with another server"},
		"no JSON":        {says("<html>"), "does not answer with JSON"},
		"a list":         {says("[]"), "not a server.json"},
		"null":           {says(`{"server":null}`), "it has no server"},
		"a huge page":    {flood, "more than 8388608 bytes"},
		"a huge server":  {says(`{"server":{"name":%q}}`, strings.Repeat("x", 2<<20)), "it has 2097"},
		"a loop":         {func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, req.URL.Path, http.StatusFound) }, "too many redirects"},
		"to plain http":  {redirect("http://registry.example/x"), "http://registry.example is not https"},
		"to a file":      {redirect("file:///etc/passwd"), "names no host"},
		"to a user":      {redirect("https://user:secret@registry.example/"), "there is a user in the address"},
		"a text of 9 kB": {says(`{"server":%s}`, serverJSON("io.example/a", "1.0.0", "A.", `"packages":[{"identifier":"`+strings.Repeat("x", 9000)+`"}]`)), "a text of 9000 bytes"},
		"a NUL":          {says(`{"server":%s}`, serverJSON("io.example/a", "1.0.0", "A.", `"packages":[{"identifier":"a\u0000b"}]`)), "a NUL byte"},
		"many packages":  {says(`{"server":%s}`, serverJSON("io.example/a", "1.0.0", "A.", `"packages":[{}`+strings.Repeat(",{}", 64)+`]`)), "a list of more than 64"},
		"silence":        {func(_ http.ResponseWriter, req *http.Request) { end(); <-req.Context().Done() }, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := mcptest.ServeRegistry(t)
			r.Handle("/v0.1/servers/io.example/a/versions/latest", c.answer)
			ctx := t.Context()
			if name == "silence" {
				ctx = ended
			}
			if s, err := (&api.Client{Address: r.URL, Dir: t.TempDir()}).Get(ctx, "io.example/a", ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", s, err, c.want)
			}
		})
	}
	for address, want := range map[string]string{
		"http://registry.example": "is not https", "file:///etc": "names no host", "https://u:p@registry.example": "there is a user",
		"gopher://x": "is not https", "-x": "names no host", "": "names no host",
	} {
		if _, err := (&api.Client{Address: address}).Search(t.Context(), []string{"x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// says answers with a text.
func says(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, http.StatusFound) }
}

func flood(w http.ResponseWriter, _ *http.Request) {
	for range 9 << 20 / 4096 {
		if _, err := w.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}

// deletedServer is the answer of a registry that returns deleted servers.
const deletedServer = `{"server":%s,"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted"}}}`

// A list leaves out malformed and deleted servers, and keeps the others.
func TestMalformedServersAreLeftOut(t *testing.T) {
	bad := []string{
		`{"name":"../../etc/passwd","version":"1.0.0"}`, `{"name":"--help/x","version":"1.0.0"}`, `{"name":"io.example/-rf","version":"1.0.0"}`,
		`{"name":"io.example/a b","version":"1.0.0"}`, `{"name":"io.example/a/b","version":"1.0.0"}`, `{"name":"io.example/..","version":"1.0.0"}`,
		`{"name":"io.example/x\u001b[2J","version":"1.0.0"}`, `{"name":"io.example/a","version":"--force"}`, `{"name":"io.example/a","version":"1.0.0;id"}`,
		`{"name":"io.example/a","version":""}`, `{"version":"1.0.0"}`, `{"name":7}`, `[]`, `"x"`,
	}
	r := mcptest.ServeRegistry(t)
	all := []string{fmt.Sprintf(deletedServer, serverJSON("io.example/gone", "1.0.0", "io.example"))}
	for _, s := range append(bad, serverJSON("io.example/good", "1.0.0", "io.example")) {
		all = append(all, fmt.Sprintf(`{"server":%s}`, s))
	}
	r.Handle("/v0.1/servers", says(`{"servers":[%s],"metadata":{"nextCursor":"again"}}`, strings.Join(all, ",")))
	found, err := (&api.Client{Address: r.URL}).Search(t.Context(), []string{"io.example"})
	if err != nil || names(found) != "io.example/good 1.0.0 active" {
		t.Errorf("got %s, %v", names(found), err)
	}
}

func TestCutVersion(t *testing.T) {
	for text, want := range map[string]string{"io.github.user/server": "io.github.user/server ", "a/b@1.0.0-x+y": "a/b 1.0.0-x+y"} {
		if name, version, err := api.CutVersion(text); err != nil || name+" "+version != want {
			t.Errorf("%s: got %s %s, %v", text, name, version, err)
		}
	}
	for _, text := range []string{"a", "a/b@", "a/b@--x", "/b", "a/", "-a/b", "a/../b", "a/b@1 2", "a/b/c", "../b", "a/b@1@2"} {
		if name, version, err := api.CutVersion(text); err == nil {
			t.Errorf("%s: got %s %s", text, name, version)
		}
	}
}

func write(t interface{ Fatal(...any) }, path string, text []byte) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
