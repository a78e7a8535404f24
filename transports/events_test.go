package transports

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadEvents(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"data: 1\n\ndata: 2\n\n", []string{"||1", "||2"}},
		{"event: e\nid: 7\ndata:a\ndata:  b\ndata\n\n", []string{"e|7|a\n b\n"}},
		{"id: 7\n\n: c\n\n", []string{"|7|", "||"}},
		{"data: 1\r\n\r\n\n\ndata: 2", []string{"||1", "||2"}},
		{"data: 1\n\ndata: {\"cut", []string{"||1"}},
		{"\ufeffdata: 1\n\n", []string{"||1"}},
	} {
		var got []string
		err := readEvents(strings.NewReader(test.in), 100, func(e event) { got = append(got, e.name+"|"+e.id+"|"+string(e.data)) })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
	}
	for _, in := range []string{"data: " + strings.Repeat("x", 101) + "\n\n", strings.Repeat("data: xxxxxxxxxx\n", 11), "data: " + strings.Repeat("x", 1<<20)} {
		if err := readEvents(strings.NewReader(in), 100, func(event) {}); !errors.Is(err, errTooLarge) {
			t.Errorf("%.20q…: got %v, want %v", in, err, errTooLarge)
		}
	}
}
