package search

import (
	"slices"
	"strings"
	"testing"
)

func TestWordsSplitsCompounds(t *testing.T) {
	for in, want := range map[string]string{
		"createIssue":                     "createissu creat issu",
		"HTTPServer_v2":                   "httpserver http server v2",
		"list-open_pull/request":          "list open pull request",
		"GitHub":                          "github git hub",
		"ABC":                             "abc",
		"Überprüfung straße":              "überprüfung straße",
		"使用必应":                            "使用 用必 必应",
		"検索API":                           "検索 索a ap pi",
		"сообщения":                       "сообщения",
		"...":                             "",
		"":                                "",
		"don't":                           "don t",
		strings.Repeat("a", 65):           "",
		"files listed listing":            "file list list",
		"queries boxes classes":           "queri box class",
		"status analysis stopped running": "statu analysi stop run",
	} {
		var got []string
		Words(in, func(w string) { got = append(got, w) })
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: got %q, want %q", in, s, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("getURLFor2 漢字x ǅuro\xffX")
	f.Fuzz(func(t *testing.T, s string) {
		Words(s, func(w string) {
			if w == "" {
				t.Error("empty term")
			}
		})
	})
}

// Two words of a query may be one in a tool's name.
func TestCompounds(t *testing.T) {
	for query, want := range map[string][]string{
		"who is on call now": {"oncal"},
		"log in":             {"login"},
		"merge request":      nil,
		"":                   nil,
		"a":                  nil,
	} {
		got := compounds(query)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q, want %q", query, got, want)
			}
		}
		if want == nil && got != nil {
			t.Errorf("%q: %q, want none", query, got)
		}
	}
}
