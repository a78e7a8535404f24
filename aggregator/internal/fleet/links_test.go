package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestURIsOfAResult(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}`:                           "x://1 link x://1",
		`{"content":[{"type":"resource","resource":{"mimeType":"m", "uri" : "x:\/\/\u0031" }}]}`:    "x://1 link x://1",
		`{"messages":[{"content":{"type":"resource","resource":{"uri":"x://1"}}}]}`:                 "x://1 link x://1",
		`{"messages":[{"content":[{"type":"resource_link","uri":"x://1"}]}]}`:                       "x://1 link x://1",
		`{"skills":[{"uri":"x://1","files":{"a":[{"uri":"x://2"}]}}],"_meta":{"uri":"x://3"}}`:      "x://1 x://2 x://3 link x://1 link x://2",
		`{"contents":[{"uri":"x://0"},{"uri":"x://1"}]}`:                                            "x://0 x://1 link x://0 link x://1",
		`{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"x://1"}]}}`:              "x://1 link x://1",
		`{"content":[{"type":"other","uri":"x://1"}],"structuredContent":{"uri":"x://2"},"uri":""}`: "x://1 x://2 ",
		`{"content":[{"type":"text","text":"\"uri\":\"x://1\""}]}`:                                  "",
		`{"content":[{"type":"text","text":"uri"}],"a":["uri","x://1"]}`:                            "",
		`{"uri":{"uri":7},"uris":["x://1"]}`:                                                        "",
		`{"uri"`:                                                                                    "",
		`{"uri":`:                                                                                   "",
		`{"uri":"x://1`:                                                                             "",
	} {
		all := slices.Collect(uris([]byte(result)))
		for at := range linksIn([]byte(result)) {
			uri, _ := wire.Text(at.In([]byte(result)))
			all = append(all, "link "+uri)
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s: got %q, want %q", result, got, want)
		}
	}
}

// Every result is searched, so most must cost almost nothing.
func BenchmarkURIs(b *testing.B) {
	for name, result := range map[string]string{
		"100B":  `{"content":[{"type":"text","text":"` + strings.Repeat("x", 60) + `"}]}`,
		"1MB":   `{"content":[{"type":"text","text":"` + strings.Repeat("lorem \\\"ipsum\\\" ", 1<<16) + `"}]}`,
		"1 URI": `{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(result)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				for range uris(raw) {
				}
			}
		})
	}
}
