package fleet

import (
	"fmt"
	"strings"
	"testing"
)

func TestSeenURIs(t *testing.T) {
	for result, want := range map[string]bool{
		`{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}`:                        true,
		`{"content":[{"type":"resource","resource":{"mimeType":"m", "uri" : "x:\/\/\u0031" }}]}`: true,
		`{"messages":[{"content":{"resource":{"uri":"x://1"}}}]}`:                                true,
		`{"contents":[{"uri":"x://0"},{"uri":"x://1"}]}`:                                         true,
		`{"content":[{"type":"text","text":"\"uri\":\"x://1\""}]}`:                               false,
		`{"content":[{"type":"text","text":"uri"}],"a":["uri","x://1"]}`:                         false,
		`{"uri":{"uri":7},"uris":["x://1"]}`:                                                     false,
		`{"uri"`:                                                                                 false,
		`{"uri":`:                                                                                false,
		`{"uri":"x://1`:                                                                          false,
	} {
		var s seenURIs
		s.AddFrom([]byte(result))
		if got := s.has("x://1"); got != want {
			t.Errorf("%s: got %v, want %v", result, got, want)
		}
	}
}

// The oldest URIs of an upstream are forgotten when it shows too many.
func TestSeenURIsAreBounded(t *testing.T) {
	var s seenURIs
	for n := range 10 * maxURIs {
		s.Add(fmt.Sprint("x://", n))
	}
	if s.has("x://0") {
		t.Error("the first is still there")
	}
	for _, n := range []int{9 * maxURIs, 10*maxURIs - 1} {
		if !s.has(fmt.Sprint("x://", n)) {
			t.Errorf("%d is gone already", n)
		}
	}
	if got := len(s.now) + len(s.old); got > 2*maxURIs {
		t.Errorf("%d are kept, want at most %d", got, 2*maxURIs)
	}
	s.Add("x://" + strings.Repeat("y", maxURILength))
	if len(s.now)+len(s.old) > 2*maxURIs || s.has("x://"+strings.Repeat("y", maxURILength)) {
		t.Error("a URI that long is data")
	}
	var once seenURIs
	once.AddFrom([]byte("[" + strings.Repeat(`{"uri":"x://0"},`, maxURIsOfOne) + `{"uri":"x://1"}]`))
	if once.has("x://1") {
		t.Error("one result may show any number")
	}
}

// Every result is searched, so most must cost almost nothing.
func BenchmarkSeenURIs(b *testing.B) {
	for name, result := range map[string]string{
		"100B":  `{"content":[{"type":"text","text":"` + strings.Repeat("x", 60) + `"}]}`,
		"1MB":   `{"content":[{"type":"text","text":"` + strings.Repeat("lorem \\\"ipsum\\\" ", 1<<16) + `"}]}`,
		"1 URI": `{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			var s seenURIs
			raw := []byte(result)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				s.AddFrom(raw)
			}
		})
	}
}
