package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/modules/registry/api"
)

// serveImages serves a registry of images with anonymous tokens and two pages of tags.
func serveImages(t *testing.T, tags ...string) (host string) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("service") == "images" && r.FormValue("scope") == "repository:a/b:pull" {
			fmt.Fprint(w, `{"token":"t0"}`)
		}
	})
	mux.HandleFunc("GET /v2/a/b/tags/list", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+server.URL+`/token",service="images",scope="repository:a/b:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		half := tags[:len(tags)/2]
		if r.FormValue("last") != "" {
			half = tags[len(tags)/2:]
		} else {
			w.Header().Set("Link", `</v2/a/b/tags/list?last=x>; rel="next"`)
		}
		fmt.Fprintf(w, `{"name":"a/b","tags":["%s"]}`, strings.Join(half, `","`))
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func TestNewestTag(t *testing.T) {
	host := serveImages(t, "1.2.0", "1.10.0", "1.11.0-rc1", "latest", "1.12.0-alpine", "v1.3.0", "2", "1.9.9", "1.2.0-alpine")
	for pinned, want := range map[string]string{"1.2.0": "1.10.0", "1.2.0-alpine": "1.12.0-alpine", "v1.0.0": "v1.3.0", "1": "2", "1.10.0": "1.10.0", "latest": ""} {
		if _, got, err := api.NewestTag(t.Context(), host+"/a/b:"+pinned); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", pinned, got, err, want)
		}
	}
	for ref, want := range map[string]string{host + "/a/other:1": "answers 404", "127.0.0.1:1/a/b:1": "refused"} {
		if _, _, err := api.NewestTag(t.Context(), ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	digest := host + "/a/b@sha256:" + strings.Repeat("0", 64)
	if _, got, err := api.NewestTag(t.Context(), digest); got != "" || err != nil {
		t.Errorf("a digest: %q, %v", got, err)
	}
}
