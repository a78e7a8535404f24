package schema

import "testing"

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"comand", "command", 1},
		{"timeuot", "timeout", 1}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"größe", "grösse", 2}, {"öa", "aö", 1},
	} {
		for _, pair := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
			if got := EditDistance([]rune(pair[0]), []rune(pair[1])); got != test.want {
				t.Errorf("%q to %q: got %d, want %d", pair[0], pair[1], got, test.want)
			}
		}
	}
}
