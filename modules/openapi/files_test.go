package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A rooted host has these roots. It implements upstream.Rooted.
type rooted struct {
	heard
	roots []string // URIs
	err   error
}

func (r rooted) HostRoots(context.Context) (json.RawMessage, error) {
	var all []json.RawMessage
	for _, uri := range r.roots {
		all = append(all, fmt.Appendf(nil, `{"uri":%q}`, uri))
	}
	return wire.Set([]byte(`{}`), "roots", wire.Array(all)), r.err
}

// calledBy returns the result of a call by a host.
func calledBy(t *testing.T, c *upstream.Conn, host rooted, tool, body string) string {
	t.Helper()
	answered := make(chan string, 1)
	c.Start(&upstream.Call{
		Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":{"body":%s}}`, tool, body), Peer: host,
		Done: func(result json.RawMessage, err error) { answered <- fmt.Sprint(string(result), err) },
	})
	return <-answered
}

func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// The bytes of a body or of a part of a form may be those of a file in the roots of the host, and of no
// other file.
func TestFilesOfTheRoots(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for path, text := range map[string]string{
		filepath.Join(in, "a b.png"): "\x89PNG\r\n\x1a\n", filepath.Join(in, "sub", "b"): "of sub", filepath.Join(out, "secret"): "secret",
		filepath.Join(in, "large"): strings.Repeat("x", 2<<20), filepath.Join(dir, "in2", "c"): "beside",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := runtime.GOOS != "windows"
	if links {
		for link, to := range map[string]string{"link": "../out/secret", "dir": "../out", "within": "sub/b"} {
			if err := os.Symlink(to, filepath.Join(in, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	post := func(name, media, schema string) string {
		return fmt.Sprintf(`"/%s":{"post":{"operationId":%[1]q,"requestBody":{"content":{%q:{"schema":%s}}}}}`, name, media, schema)
	}
	form := `{"type":"object","properties":{"files":{"type":"array","items":{"type":"string","format":"binary"}},"note":{"type":"string"}}}`
	api := serveAPI(t, document30(post("bytes", "image/png", `{}`)+","+post("parts", "multipart/form-data", form)+","+post("form", "application/x-www-form-urlencoded", form)), writeJSON(`{}`))
	stateDir(t)
	c := connected(t, schema.Server{OpenAPI: api.URL + "/openapi.json", MaxMessageBytes: 1 << 20})
	host := rooted{roots: []string{uriOf(filepath.Join(dir, "other")), uriOf(in)}}

	if got := string(wire.Get(toolsOf(t, c)["bytes"], "inputSchema", "properties", "body", "description")); !strings.Contains(got, "file:///PATH") {
		t.Errorf("the tool does not say that a file may be named: %s", got)
	}
	if got := string(toolsOf(t, c)["form"]); strings.Contains(got, "file:///PATH") {
		t.Errorf("a form without parts cannot send a file: %s", got)
	}
	good := map[string]string{"a b.png": "\x89PNG\r\n\x1a\n", "sub/b": "of sub", "sub/../sub/b": "of sub"}
	if links {
		good["within"] = "of sub"
	}
	for name, want := range good {
		answer := calledBy(t, c, host, "bytes", fmt.Sprintf("%q", strings.ReplaceAll(uriOf(in)+"/"+name, " ", "%20")))
		if seen := api.seen(); len(seen) != 1 || seen[0].body != want {
			t.Errorf("%s: %v was sent, want %q: %s", name, seen, want, answer)
		}
	}

	bad := map[string]string{ // URI → what the answer says
		uriOf(filepath.Join(out, "secret")): "not in the roots", uriOf(in) + "/../out/secret": "not in the roots", uriOf(in) + "/%2e%2e/out/secret": "not in the roots",
		uriOf(in) + "2/c": "not in the roots", uriOf(in) + "/none": "none", uriOf(in): "is a directory", uriOf(in) + "/sub": "is a directory",
		uriOf(in) + "/large": "larger than 1 MiB", "file://elsewhere" + in + "/sub/b": "not the URI of a file on this machine", "file:sub/b": "not absolute",
		uriOf(in) + "/sub/b?x": "not the URI", in + "/sub/b": "not base64",
	}
	if links {
		bad[uriOf(in)+"/link"], bad[uriOf(in)+"/dir/secret"] = "escapes", "escapes"
	}
	for uri, want := range bad {
		for tool, body := range map[string]string{"bytes": fmt.Sprintf("%q", uri), "parts": fmt.Sprintf(`{"files":[%q]}`, uri)} {
			if answer := calledBy(t, c, host, tool, body); !strings.Contains(answer, want) || !strings.Contains(answer, "Nothing was sent") || strings.Contains(answer, "secret\"") {
				t.Errorf("%s %s: %s, want %q", tool, uri, answer, want)
			}
		}
	}
	if answer := calledBy(t, c, rooted{err: errors.New("it is elsewhere")}, "bytes", fmt.Sprintf("%q", uriOf(in)+"/sub/b")); !strings.Contains(answer, "it is elsewhere") {
		t.Errorf("a host without roots: %s", answer)
	}
	if answer := called(t, c, "bytes", fmt.Sprintf(`{"body":%q}`, uriOf(in)+"/sub/b")); !strings.Contains(answer, "no host") {
		t.Errorf("no host: %s", answer)
	}
	if seen := api.seen(); len(seen) > 0 {
		t.Errorf("%v was sent", seen)
	}

	calledBy(t, c, host, "parts", fmt.Sprintf(`{"files":[%q,"AAE="],"note":%q}`, uriOf(in)+"/a%20b.png", uriOf(in)+"/sub/b"))
	got := api.seen()[0]
	_, params, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	parsed, err := multipart.NewReader(strings.NewReader(got.body), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if files := parsed.File["files"]; len(files) != 2 || files[0].Filename != "a b.png" || files[0].Size != 8 || files[0].Header.Get("Content-Type") != "image/png" || files[1].Filename != "files" {
		t.Errorf("files: %v", files)
	}
	if note := parsed.Value["note"]; len(note) != 1 || note[0] != uriOf(in)+"/sub/b" {
		t.Errorf("a text is taken for a file: %q", note)
	}
}
