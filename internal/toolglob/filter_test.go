package toolglob

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestFilterHidesTools(t *testing.T) {
	t.Parallel()
	names := []string{"get_a", "get_secret_a", "list_a", "delete_a", "Get_B", "x/y", "[odd]"}
	for _, tt := range []struct {
		filter []string
		want   string
	}{
		{nil, "get_a get_secret_a list_a delete_a Get_B x/y [odd]"},
		{[]string{"!delete_*"}, "get_a get_secret_a list_a Get_B x/y [odd]"},
		{[]string{"get_*", "list_*"}, "get_a get_secret_a list_a"},
		{[]string{"get_*", "!get_secret_*"}, "get_a"},
		{[]string{"!get_secret_*", "get_*"}, "get_a"},
		{[]string{"[gG]et_?"}, "get_a Get_B"},
		{[]string{"[!g]*"}, "list_a delete_a Get_B x/y [odd]"},
		{[]string{"[a-f]*"}, "delete_a"},
		{[]string{"*"}, "get_a get_secret_a list_a delete_a Get_B x/y [odd]"},
		{[]string{"x*"}, "x/y"},
		{[]string{"[[]odd]"}, "[odd]"},
		{[]string{`\[odd\]`}, "[odd]"},
		{[]string{"{get,list}_a"}, "get_a list_a"},
		{[]string{"{get_{secret_,},list_}a"}, "get_a get_secret_a list_a"},
		{[]string{"!{get_a,list_a,delete_a}"}, "get_secret_a Get_B x/y [odd]"},
		{[]string{"!*_{a,B}"}, "x/y [odd]"},
		{[]string{"*", "!x{/,}[y-z]"}, "get_a get_secret_a list_a delete_a Get_B [odd]"},
		{[]string{"?/?"}, "x/y"},
		{[]string{"**"}, "get_a get_secret_a list_a delete_a Get_B x/y [odd]"},
		{[]string{"**/y"}, "x/y"},
		{[]string{"**/get_a"}, ""},
		{[]string{"a.b+("}, ""},
		{[]string{""}, ""},
		{[]string{"!*"}, ""},
	} {
		f := NewFilter(tt.filter)
		var got []string
		for _, n := range names {
			if f.Passes(n, Destructive) {
				got = append(got, n)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: got %q, want %q", tt.filter, s, tt.want)
		}
	}
}

// Filters select tools by their annotations. Missing and contradictory ones count as the
// worst.
func TestFilterOfClasses(t *testing.T) {
	t.Parallel()
	tools := []string{
		`{"name":"silent"}`,
		`{"name":"reads","annotations":{"readOnlyHint":true}}`,
		`{"name":"writes","annotations":{"destructiveHint":false}}`,
		`{"name":"changes","annotations":{"readOnlyHint":false,"idempotentHint":true}}`,
		`{"name":"destroys","annotations":{"destructiveHint":true}}`,
		`{"name":"contradicts","annotations":{"readOnlyHint":true,"destructiveHint":true}}`,
		`{"name":"reads_and_says_all","annotations":{"readOnlyHint":true,"destructiveHint":false}}`,
		`{"name":"text","annotations":{"readOnlyHint":"true"}}`,
		`{"name":"@readonly"}`,
	}
	for _, tt := range []struct {
		filter []string
		want   string
	}{
		{[]string{"@readonly"}, "reads reads_and_says_all"},
		{[]string{"@write"}, "writes"},
		{[]string{"@destructive"}, "silent changes destroys contradicts text @readonly"},
		{[]string{"!@destructive"}, "reads writes reads_and_says_all"},
		{[]string{"@readonly", "chang*"}, "reads changes reads_and_says_all"},
		{[]string{"@readonly", "!*_all"}, "reads"},
		{[]string{`\@readonly`}, "@readonly"},
	} {
		f := NewFilter(tt.filter)
		var got []string
		for _, raw := range tools {
			name, _ := wire.Text(wire.Get([]byte(raw), "name"))
			if f.Passes(name, AccessOf(wire.Get([]byte(raw), "annotations"))) {
				got = append(got, name)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: got %q, want %q", tt.filter, s, tt.want)
		}
	}
}
