package nearest

import "testing"

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"comand", "command", 1},
		{"timeuot", "timeout", 1}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"größe", "grösse", 2}, {"öa", "aö", 1},
	} {
		for _, pair := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
			if got := Distance([]rune(pair[0]), []rune(pair[1])); got != test.want {
				t.Errorf("%q to %q: got %d, want %d", pair[0], pair[1], got, test.want)
			}
		}
	}
}

// One letter in three may differ, the first of equally near candidates is returned, and a suffix
// of two letters is too short.
func TestNearest(t *testing.T) {
	for _, test := range []struct {
		s          string
		candidates []string
		want       string
	}{
		{"aa", []string{"ab", "ac"}, "ab"},
		{"aa", []string{"bb"}, ""},
		{"io", []string{"stdio"}, ""},
		{"dio", []string{"stdio"}, "stdio"},
		{"HTTP", []string{"sse", "streamable-http"}, "streamable-http"},
		{"comand", []string{"args", "command"}, "command"},
		{"abcdef", []string{"abcxyf"}, "abcxyf"},
		{"abcdef", []string{"abxyzf"}, ""},
	} {
		if got := Word(test.s, test.candidates); got != test.want {
			t.Errorf("%q of %q: got %q, want %q", test.s, test.candidates, got, test.want)
		}
	}
}
