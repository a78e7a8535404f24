package search

import (
	"slices"
	"strings"
	"testing"
)

func TestIndexCountsSaturate(t *testing.T) {
	texts := []string{strings.Repeat("zebra ", 300), strings.Repeat("zebra x ", 8000) + "zebra", "okapi zebra"}
	x := NewIndex(len(texts), func(i int) Doc { return Doc{Name: "a", Description: texts[i]} })
	at := x.find(hashOf("zebra"))
	var counts []int
	for _, hit := range x.list[at.start:at.end] {
		counts = append(counts, int(hit.doc), int(hit.count[inText]))
	}
	if want := []int{0, 255, 1, 255, 2, 1}; !slices.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	if n := x.length[0][inText]; n != 300 {
		t.Errorf("%d words, want 300", n)
	}
	if at := x.find(hashOf("giraff")); at != (span{}) {
		t.Errorf("an unknown term is at %v", at)
	}
	none := NewIndex(0, nil)
	if at := none.find(hashOf("zebra")); at != (span{}) {
		t.Errorf("a term of an empty index is at %v", at)
	}
}
