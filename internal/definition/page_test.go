package definition

import (
	"strings"
	"testing"
)

// A page is what a host shows and allows; what else a server answers does not count.
func TestPageDigest(t *testing.T) {
	page := func(members string) string {
		return PageDigest([]byte(`{"contents":[{"uri":"ui://a","mimeType":"text/html",` + members + `}]}`))
	}
	is := page(`"text":"<p>a","_meta":{"ui":{"csp":{"connectDomains":["https://a"]}}}`)
	for members, same := range map[string]bool{
		`"_meta":{"x":1,"ui":{"csp":{"connectDomains":["https:\/\/a"]}}},"text":"<p>\u0061","size":5`: true,
		`"text":"<p>b","_meta":{"ui":{"csp":{"connectDomains":["https://a"]}}}`:                       false,
		`"blob":"PHA+YQ==","_meta":{"ui":{"csp":{"connectDomains":["https://a"]}}}`:                   false,
		`"text":"<p>a","_meta":{"ui":{"csp":{"connectDomains":["https://b"]}}}`:                       false,
		`"text":"<p>a"`: false,
	} {
		if got := page(members) == is; got != same {
			t.Errorf("%s: the digest is the same: %t, want %t", members, got, same)
		}
	}
	if !IsDigest(is) || PageDigest([]byte(`{}`)) != "" || PageDigest([]byte(`{"contents":[1]}`)) != "" {
		t.Errorf("%q is not a digest, or what is no page has one", is)
	}
}

// A server cannot say what its page is.
func TestPageOfDefinition(t *testing.T) {
	plain := New("a", []byte(`{"name":"a"}`), "")
	for _, own := range []string{`"view":"sha256:1"`, `"\u0076iew":"sha256:1"`, `"view":null`, `"view":1,"view":2`} {
		if New("a", []byte(`{"name":"a",`+own+`}`), "").Digest != plain.Digest {
			t.Errorf("%s changes the digest", own)
		}
		if New("a", []byte(`{"name":"a",`+own+`}`), "sha256:2").Digest != New("a", []byte(`{"name":"a"}`), "sha256:2").Digest {
			t.Errorf("%s changes the digest with a page", own)
		}
	}
	if text := string(Of(New("a", []byte(`{"name":"a"}`), PageVaries).Raw)); !strings.Contains(text, `"view":"differs each time it is read"`) {
		t.Errorf("the definition is %s", text)
	}
}
