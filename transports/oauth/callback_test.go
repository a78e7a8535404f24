package oauth

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func get(t *testing.T, method, address string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header
}

func TestCallback(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query  string
		status int
		err    string // empty for no error
	}{
		"code and state": {"?code=c0de&state=st4te", 200, ""},
		"an error":       {"?error=access_denied&error_description=no+%3Cscript%3E&state=st4te", 400, "access_denied: no <script>"},
		"no code":        {"?state=st4te", 400, "without a code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := listen(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if !strings.HasPrefix(c.RedirectURL, "http://127.0.0.1:") || !strings.HasSuffix(c.RedirectURL, "/callback") {
				t.Errorf("redirect to %s", c.RedirectURL)
			}
			if status, _, _ := get(t, http.MethodGet, c.RedirectURL+test.query); status != 400 {
				t.Errorf("before a login: status %d", status)
			}
			_, _ = c.expect("st4te", "")
			if status, _, _ := get(t, http.MethodGet, strings.TrimSuffix(c.RedirectURL, "callback")); status != 404 {
				t.Errorf("another path: status %d", status)
			}
			if status, _, header := get(t, http.MethodPost, c.RedirectURL+test.query); status != 405 || header.Get("Allow") != "GET" {
				t.Errorf("another method: status %d, Allow %q", status, header.Get("Allow"))
			}
			for _, other := range []string{"", "?code=x", "?state=", "?error=access_denied", "?code=x&state=<script>alert(1)</script>", "?code=x&state=st4t"} {
				if status, page, _ := get(t, http.MethodGet, c.RedirectURL+other); status != 400 || strings.Contains(page, "<script") {
					t.Errorf("%s: status %d, page %s", other, status, page)
				}
			}
			status, page, _ := get(t, http.MethodGet, c.RedirectURL+test.query)
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			if strings.Contains(page, "<script") || strings.Contains(page, "c0de") || strings.Contains(page, "st4te") {
				t.Errorf("the page contains parts of the query: %s", page)
			}
			if (test.err == "") != strings.Contains(page, "Authorization complete") {
				t.Errorf("page: %s", page)
			}
			got, err := c.wait(deadline(t))
			switch {
			case test.err == "" && (err != nil || got.Code != "c0de" || got.State != "st4te"):
				t.Errorf("got %v, %v", got, err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			}
			if status, _, _ := get(t, http.MethodGet, c.RedirectURL+"?code=x&state=st4te"); status != 400 {
				t.Errorf("the second callback: status %d", status)
			}
		})
	}
}
