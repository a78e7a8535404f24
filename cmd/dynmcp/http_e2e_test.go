//go:build e2e

package main_test

import "testing"

// TestBrokenHTTPAnswers breaks the answer to one call of a session. The next call works.
func TestBrokenHTTPAnswers(t *testing.T) {
	t.Parallel()
	for fault, wants := range map[string][]string{
		"h500":                {"500", "outcome unknown"},
		"h500-after":          {"500", "outcome unknown"},
		"h429":                {"429", "hint: ", "outcome not_sent"},
		"h503":                {"503", "hint: ", "outcome unknown"},
		"h403":                {"403", "outcome unknown"},
		"truncate-sse":        {"outcome unknown"},
		"end-sse":             {"outcome unknown"},
		"html":                {"text/html"},
		"bad-json":            {"cannot be read"},
		"empty-200":           {"outcome"},
		"h204":                {"204"},
		"h202":                {"202"},
		"wrong-id":            {"outcome unknown"},
		"rst-after":           {"outcome unknown"},
		"huge-body:20000000":  {"16777216"},
		"huge-event:20000000": {"larger than max_message_bytes"},
		"stall-sse":           {"no answer", "outcome unknown"},
		"slow-header":         {"no answer", "outcome unknown"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := remote(t, "web", "-fault", fault, "-fault-times", "1")
			if len(wants) > 0 && wants[0] == "no answer" {
				e = e.with("timeout", "5s")
			}
			host := serve(t, e)
			m := use(host, "web/echo", `{"nonce":"first"}`)
			if wants != nil && (!m.IsError() || m.Error != nil) {
				t.Errorf("got %.1000s", m.Raw)
			}
			contains(t, m.Text(), wants...)
			if n := e.Count("call echo first"); n > 1 {
				t.Errorf("the call was made %d times", n)
			}
			checkEcho(t, host, "web/echo", `{}`)
		})
	}
}
