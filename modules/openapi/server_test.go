package openapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

const getPet = `"/pets/{id}":{"get":{"operationId":"getPet","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}]}}`

func writeJSON(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

// Values are written as RFC 6570 and the examples of OpenAPI 3.0, "Style Examples", say.
func TestStylesOfParameters(t *testing.T) {
	color := map[string]string{"list": `["blue","black"]`, "object": `{"G":200,"R":100}`, "text": `"b/l ue"`}
	cases := []struct{ in, style, explode, value, want string }{
		{"path", "", "", "text", "/x/b%2Fl%20ue?"},
		{"path", "", "", "list", "/x/blue,black?"},
		{"path", "simple", "true", "object", "/x/G=200,R=100?"},
		{"path", "label", "", "list", "/x/.blue,black?"},
		{"path", "label", "true", "object", "/x/.G=200.R=100?"},
		{"path", "matrix", "", "list", "/x/;color=blue,black?"},
		{"path", "matrix", "true", "list", "/x/;color=blue;color=black?"},
		{"path", "matrix", "true", "object", "/x/;G=200;R=100?"},
		{"query", "", "", "text", "/x?color=b%2Fl+ue"},
		{"query", "", "", "list", "/x?color=blue&color=black"},
		{"query", "form", "false", "list", "/x?color=blue,black"},
		{"query", "form", "false", "object", "/x?color=G,200,R,100"},
		{"query", "form", "true", "object", "/x?G=200&R=100"},
		{"query", "spaceDelimited", "false", "list", "/x?color=blue%20black"},
		{"query", "pipeDelimited", "false", "list", "/x?color=blue|black"},
		{"query", "deepObject", "true", "object", "/x?color[G]=200&color[R]=100"},
		{"header", "", "", "list", "Color: blue,black"},
		{"header", "", "true", "object", "Color: G=200,R=100"},
		{"cookie", "", "", "text", "Cookie: color=b%2Fl+ue"},
	}
	var paths []string
	for i, test := range cases {
		extra := ""
		if test.style != "" {
			extra += fmt.Sprintf(`,"style":%q`, test.style)
		}
		if test.explode != "" {
			extra += `,"explode":` + test.explode
		}
		path := fmt.Sprintf("/x%d", i)
		if test.in == "path" {
			path += "/{color}"
		}
		paths = append(paths, fmt.Sprintf(`%q:{"get":{"operationId":"x%d","parameters":[{"name":"color","in":%q,"required":true,"schema":{}%s}]}}`, path, i, test.in, extra))
	}
	stateDir(t)
	api := serveAPI(t, document30(strings.Join(paths, ",")), nil)
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json"})
	for i, test := range cases {
		called(t, c, fmt.Sprintf("x%d", i), `{"color":`+color[test.value]+`}`)
		seen := api.seen()
		if len(seen) != 1 {
			t.Fatalf("%d requests", len(seen))
		}
		got := strings.Replace(seen[0].path, fmt.Sprintf("/x%d", i), "/x", 1) + "?" + seen[0].query
		if name, _, ok := strings.Cut(test.want, ": "); ok {
			got = name + ": " + seen[0].header.Get(name)
		}
		if got != test.want {
			t.Errorf("%s %s explode %s of %s: %s, want %s", test.in, test.style, test.explode, test.value, got, test.want)
		}
	}
}

func TestBodies(t *testing.T) {
	post := func(name, media, schema, more string) string {
		return fmt.Sprintf(`"/%s":{"post":{"operationId":%q,"requestBody":{"required":true,"content":{%q:{"schema":%s%s}}}}}`, name, name, media, schema, more)
	}
	form := `{"type":"object","properties":{"file":{"type":"string","format":"binary"},"tags":{"type":"array","items":{"type":"string"}},"meta":{"type":"object"}}}`
	stateDir(t)
	api := serveAPI(t, document30(strings.Join([]string{
		post("json", "application/vnd.api+json", `{"type":"object"}`, ""),
		post("form", "application/x-www-form-urlencoded", form, `,"encoding":{"meta":{"style":"deepObject","explode":true}}`),
		post("plainform", "application/x-www-form-urlencoded", form, ""),
		post("multipart", "multipart/form-data", form, ""),
		post("text", "text/csv", `{}`, ""),
		post("bytes", "application/octet-stream", `{}`, ""),
	}, ",")), nil)
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json"})
	for _, test := range []struct{ tool, arguments, media, body string }{
		{"json", `{"body":{"big":12345678901234567890,"html":"<&>"}}`, "application/vnd.api+json", `{"big":12345678901234567890,"html":"<&>"}`},
		{"form", `{"body":{"tags":["a","b c"],"meta":{"k":{"n":1}}}}`, "application/x-www-form-urlencoded", `meta[k][n]=1&tags=a&tags=b+c`},
		{"plainform", `{"body":{"meta":{"k":1}}}`, "application/x-www-form-urlencoded", `meta=%7B%22k%22%3A1%7D`},
		{"text", `{"body":"a,b\n1,2"}`, "text/csv", "a,b\n1,2"},
		{"bytes", `{"body":"AAEC"}`, "application/octet-stream", "\x00\x01\x02"},
	} {
		called(t, c, test.tool, test.arguments)
		got := api.seen()[0]
		if got.body != test.body || got.header.Get("Content-Type") != test.media {
			t.Errorf("%s: %q as %s, want %q as %s", test.tool, got.body, got.header.Get("Content-Type"), test.body, test.media)
		}
	}
	called(t, c, "multipart", `{"body":{"file":"iVBORw0KGgo=","tags":["a","b"],"meta":{"k":1}}}`)
	got := api.seen()[0]
	_, params, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	parsed, err := multipart.NewReader(strings.NewReader(got.body), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(parsed.Value["tags"], []string{"a", "b"}) || parsed.Value["meta"][0] != `{"k":1}` || len(parsed.File["file"]) != 1 || parsed.File["file"][0].Header.Get("Content-Type") != "image/png" {
		t.Errorf("multipart: %v, %v", parsed.Value, parsed.File)
	}
	if result := called(t, c, "bytes", `{"body":"not base64!"}`); !strings.Contains(result, "Nothing was sent") || !strings.Contains(result, `"isError":true`) || len(api.seen()) != 0 {
		t.Errorf("not base64: %s", result)
	}
	if result := called(t, c, "json", `{}`); !strings.Contains(result, "the argument body is missing") || len(api.seen()) != 0 {
		t.Errorf("no body: %s", result)
	}
}

// A value of the path cannot lead to another path.
func TestPathsCannotBeLeft(t *testing.T) {
	stateDir(t)
	api := serveAPI(t, document30(getPet), nil)
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json"})
	for _, id := range []string{"..", ".", "", "../admin"} {
		result := called(t, c, "getPet", fmt.Sprintf(`{"id":%q}`, id))
		for _, r := range api.seen() {
			if r.path != "/pets/..%2Fadmin" {
				t.Errorf("%q went to %s", id, r.path)
			}
		}
		if id != "../admin" && !strings.Contains(result, "Nothing was sent") {
			t.Errorf("%q: %s", id, result)
		}
	}
}

func TestResults(t *testing.T) {
	var kind, body string
	status := http.StatusOK
	stateDir(t)
	api := serveAPI(t, document30(getPet), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Link", `<https://api.test/pets?page=2>; rel="next"`)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json?key=k", MaxMessageBytes: 4096})
	link := `{"type":"text","text":"Link: <https://api.test/pets?page=2>; rel=\"next\""}`
	text := func(s string) string { return string(wire.Quote(s)) }
	blob := base64.StdEncoding.EncodeToString([]byte("\x00\xff"))
	for _, test := range []struct {
		status     int
		kind, body string
		want       string
	}{
		{200, "application/json", "{\"a\": 1.0,\n \"id\": 12345678901234567890}", `{"content":[{"type":"text","text":` + text("{\"a\": 1.0,\n \"id\": 12345678901234567890}") + `},` + link + `],"structuredContent":{"a":1.0,"id":12345678901234567890}}`},
		{200, "application/hal+json", `[1]`, `{"content":[{"type":"text","text":"[1]"},` + link + `]}`},
		{200, "application/json", `{"a":`, `{"content":[{"type":"text","text":"{\"a\":"},` + link + `]}`},
		{200, "text/html", "<b>", `{"content":[{"type":"text","text":"<b>"},` + link + `]}`},
		{200, "image/png", "\x00\xff", `{"content":[{"type":"image","data":"` + blob + `","mimeType":"image/png"},` + link + `]}`},
		{200, "audio/mpeg", "\x00\xff", `{"content":[{"type":"audio","data":"` + blob + `","mimeType":"audio/mpeg"},` + link + `]}`},
		{200, "application/pdf", "\x00\xff", `{"content":[{"type":"resource","resource":{"uri":"` + api.URL + `/pets/1","mimeType":"application/pdf","blob":"` + blob + `"}},` + link + `]}`},
		{204, "", "", `{"content":[{"type":"text","text":"HTTP status 204 No Content"},` + link + `]}`},
		{404, "application/json", `{"error":"no such pet"}`, `{"content":[{"type":"text","text":"HTTP status 404 Not Found\n{\"error\":\"no such pet\"}"},` + link + `],"isError":true}`},
		{403, "application/json", `{}`, `{"content":[{"type":"text","text":"HTTP status 403 Forbidden\n{}"},` + link + `],"isError":true}`},
	} {
		status, kind, body = test.status, test.kind, test.body
		if got := called(t, c, "getPet", `{"id":"1"}`); got != test.want {
			t.Errorf("%d %s:\n%s, want\n%s", test.status, test.kind, got, test.want)
		}
	}
	for _, test := range []struct {
		status  int
		size    int
		code    int64
		outcome transports.Outcome
	}{
		{200, 8192, transports.CodeTooLarge, transports.Executed},
		{401, 1, transports.CodeAuthRequired, transports.NotSent},
		{429, 1, transports.CodeRateLimited, transports.NotSent},
	} {
		status, kind, body = test.status, "application/json", `"`+strings.Repeat("x", test.size)+`"`
		_, err := call(t, c, "getPet", `{"id":"1"}`)
		if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Code != test.code || f.Outcome != test.outcome {
			t.Errorf("%d of %d bytes: %v", test.status, test.size, err)
		}
	}
}

// A call is sent once, and its failure says whether it may have run.
func TestCallsAreSentOnce(t *testing.T) {
	stateDir(t)
	api := serveAPI(t, document30(`"/pets":{"post":{"operationId":"addPet"}}`), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json", Headers: map[string]string{"Idempotency-Key": "1"}})
	_, err := call(t, c, "addPet", `{}`)
	if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Outcome != transports.Unknown {
		t.Errorf("a broken answer: %v", err)
	}
	if n := len(api.seen()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	api.Close()
	for range 3 { // an idle connection that has just been closed may be written to
		if _, err = call(t, c, "addPet", `{}`); !strings.Contains(err.Error(), "broke") {
			break
		}
	}
	if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Outcome != transports.NotSent {
		t.Errorf("no server: %v", err)
	}
}

// So it is with other connections idle: net/http takes the next one at once.
func TestCallsAreSentOnceWithIdleConnections(t *testing.T) {
	stateDir(t)
	var waiting sync.WaitGroup // for requests at the same time
	api := serveAPI(t, document30(`"/pets":{"post":{"operationId":"addPet"},"get":{"operationId":"listPets"}}`), func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		waiting.Done()
		waiting.Wait()
	})
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json", Headers: map[string]string{"Idempotency-Key": "1"}})
	for range 20 {
		waiting.Add(4)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := call(t, c, "listPets", `{}`); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		api.seen()
		if _, err := call(t, c, "addPet", `{}`); err == nil {
			t.Error("a broken answer is none")
		}
		if n := len(api.seen()); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
	}
}

// What the entry says goes to its own origin only, no redirect leads elsewhere, and a document does not
// send calls to another origin.
func TestOrigins(t *testing.T) {
	stateDir(t)
	elsewhere := serveAPI(t, "", nil)
	api := serveAPI(t, document30(getPet), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/stolen", http.StatusTemporaryRedirect)
	})
	secret := map[string]string{"Authorization": "Bearer s3cret"}
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json", Headers: secret})
	if _, err := call(t, c, "getPet", `{"id":"1"}`); err == nil || !strings.Contains(err.Error(), "refused a redirect") {
		t.Errorf("a redirect to another origin: %v", err)
	}
	if seen := api.seen(); len(seen) != 1 || seen[0].header.Get("Authorization") != "Bearer s3cret" {
		t.Errorf("the entry's header is not sent: %v", seen)
	}
	if seen := elsewhere.seen(); len(seen) != 0 {
		t.Errorf("%v went to another origin", seen)
	}

	// The document is elsewhere: it gets no secret, and its operations go to the url.
	var got http.Header
	host := serveAPI(t, "", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, document30(getPet)[:1]+`"servers":[{"url":"https://evil.test"}],`+document30(getPet)[1:])
	})
	c = connected(t, schema.Server{OpenAPI: host.URL + "/doc", URL: elsewhere.URL + "/v1/?key=k", Headers: secret})
	if got.Get("Authorization") != "" {
		t.Error("the host of the document got the header")
	}
	called(t, c, "getPet", `{"id":"1"}`)
	if seen := elsewhere.seen(); len(seen) != 1 || seen[0].path != "/v1/pets/1" || seen[0].query != "key=k" || seen[0].header.Get("Authorization") == "" {
		t.Errorf("the url got %+v", seen)
	}
	if _, err := connect(t, schema.Server{OpenAPI: host.URL + "/doc"}, adapter{}, upstream.ConnOptions{}); err == nil || !strings.Contains(err.Error(), `the document sends it to https://evil.test, another origin than its own: if that is right, write it as "url" in the entry`) {
		t.Errorf("a document that leads elsewhere: %v", err)
	}
}

// The document is stored, compared by its ETag, and a change is one of the list.
func TestDocumentsAreComparedAndChange(t *testing.T) {
	dir := stateDir(t)
	api := serveAPI(t, document30(getPet), writeJSON(`{}`))
	entry := schema.Server{OpenAPI: api.URL + "/openapi.json"}
	first := connected(t, entry)
	first.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "dynmcp", "openapi", "*"))
	if len(files) != 1 {
		t.Fatalf("stored: %v", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the stored document: %v, %v", info.Mode(), err)
	}
	changes := make(heard, 4)
	c, err := connect(t, entry, eager{}, upstream.ConnOptions{Peer: changes})
	if err != nil {
		t.Fatal(err)
	}
	if got := api.statuses(); !slices.Equal(got, []int{200, 304}) {
		t.Errorf("the document was fetched with %v", got)
	}
	api.mu.Lock()
	api.document, api.etag = document30(getPet+`,"/new":{"get":{"operationId":"new"}}`), `"2"`
	api.mu.Unlock()
	called(t, c, "getPet", `{"id":"1"}`)
	select {
	case method := <-changes:
		if method != "notifications/tools/list_changed" {
			t.Errorf("heard %s", method)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no change was announced")
	}
	if tools := toolsOf(t, c); len(tools) != 2 || tools["new"] == nil {
		t.Errorf("%d tools after the change", len(tools))
	}
	// A page of an error in its place changes nothing.
	api.mu.Lock()
	api.document, api.etag = "<html>maintenance</html>", `"3"`
	api.mu.Unlock()
	if tools := toolsOf(t, connected(t, entry)); len(tools) != 2 {
		t.Errorf("%d tools of the stored document", len(tools))
	}
	api.Close()
	if tools := toolsOf(t, connected(t, entry)); len(tools) != 2 {
		t.Errorf("%d tools of the stored document while its address does not answer", len(tools))
	}
	if err := os.WriteFile(files[0], []byte("{}\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, entry, adapter{}, upstream.ConnOptions{}); err == nil {
		t.Error("a damaged stored document was used")
	}
}

// An eager adapter compares the document at each call.
type eager struct{ adapter }

func (e eager) Open(entry schema.Server, web *upstream.Web) (upstream.Adapted, error) {
	s, err := e.adapter.Open(entry, web)
	if s, ok := s.(*server); ok {
		s.again = 0
	}
	return s, err
}

// Files work without an address, and are read again.
func TestFiles(t *testing.T) {
	stateDir(t)
	api := serveAPI(t, "", writeJSON(`{}`))
	path := writeFile(t, "pets.yaml", "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets:\n    get:\n      operationId: list.pets\n      responses: {200: {description: ok}}\n")
	c := connected(t, schema.Server{OpenAPI: path, URL: api.URL + "/base"})
	called(t, c, "list_pets", `{}`)
	if seen := api.seen(); len(seen) != 1 || seen[0].path != "/base/pets" {
		t.Errorf("%v", seen)
	}
	if _, err := connect(t, schema.Server{OpenAPI: path + ".none", URL: api.URL}, adapter{}, upstream.ConnOptions{}); err == nil || !strings.Contains(err.Error(), "the OpenAPI document") {
		t.Errorf("no file: %v", err)
	}
}

// Without the module an entry says what it lacks.
func TestBuildsWithoutTheModule(t *testing.T) {
	_, err := connect(t, schema.Server{OpenAPI: "https://api.test/openapi.json"}, nil, upstream.ConnOptions{})
	if f, ok := errors.AsType[*transports.Failure](err); !ok || !strings.Contains(f.Text(), "use a build with the module openapi") {
		t.Errorf("%v", err)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	stateDir(t)
	began, ended := make(chan bool, 1), make(chan bool, 1)
	api := serveAPI(t, document30(getPet), func(_ http.ResponseWriter, r *http.Request) {
		began <- true
		<-r.Context().Done()
		ended <- true
	})
	c, err := connect(t, schema.Server{OpenAPI: api.URL + "/openapi.json", Timeout: 300 * time.Millisecond}, adapter{}, upstream.ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call(t, c, "getPet", `{"id":"1"}`)
	if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Code != transports.CodeTimeout || f.Outcome != transports.Unknown {
		t.Errorf("a slow call: %v", err)
	}
	<-began
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the request of a call that timed out goes on")
	}
}

func TestUnknownRequests(t *testing.T) {
	stateDir(t)
	api := serveAPI(t, document30(getPet), nil)
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json"})
	for method, params := range map[string]string{"tools/call": `{"name":"nothing"}`, "resources/list": `{}`, "tools/list": `{"cursor":"x"}`} {
		if _, err := c.Call(t.Context(), method, json.RawMessage(params)); !errors.As(err, new(*wire.Error)) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
