package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestStderrTail(t *testing.T) {
	s := &Tail{Max: 1000}
	var seen []string
	s.Drain(strings.NewReader("one\r\n\ntwo\n"+strings.Repeat("x", 9000)+"\nlast"), func(line string) { seen = append(seen, line) })
	if len(seen) != 6 || seen[0] != "one" || seen[1] != "two" || len(seen[2]) != 4096 || seen[5] != "last" {
		t.Errorf("got %d lines", len(seen))
	}
	if got := s.Text(); len(got) > 1000+1 || !strings.HasSuffix(got, "\nlast") {
		t.Errorf("got %d bytes, %q", len(got), got[max(0, len(got)-20):])
	}
	for n := range 100 {
		s.Add(fmt.Sprintf("line %d", n))
	}
	if got := strings.Split(s.Text(), "\n"); len(got) != tailLines || !slices.Contains(got, "line 99") || got[0] != "line 80" {
		t.Errorf("got %q", got)
	}
}
