package wire

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// AVX2 finds the same bytes as plain words, and skipString returns the same. Not parallel, because
// it changes a variable.
func TestVectorsAreWords(t *testing.T) {
	if !vectors {
		t.Skip("the processor has none")
	}
	defer func() { vectors = true }()
	letter := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\\\\\\\u0aFnaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(letter, 64, 2000).Draw(t, "text")
		vector, word := make([]uint64, len(text)/64), make([]uint64, len(text)/64)
		vectors = true
		masksOf(vector, text)
		maskWords(word, text)
		if !slices.Equal(vector, word) {
			t.Fatalf("masks of %q\ngot  %x\nwant %x", text, vector, word)
		}
		text[0] = '"'
		end, err := skipString(text, 0)
		vectors = false
		wantEnd, want := skipString(text, 0)
		if end != wantEnd || (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
			t.Fatalf("%q\ngot  %d, %v\nwant %d, %v", text, end, err, wantEnd, want)
		}
	})
}

// One SSE instruction among those of AVX costs more than all others together.
func TestVectorsWithoutSSE(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("masks_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^\s+(\w+)\s.*\b[XY]\d`).FindAllStringSubmatch(string(text), -1) {
		if found++; !strings.HasPrefix(m[1], "V") {
			t.Errorf("%s is not an AVX instruction", m[1])
		}
	}
	if found == 0 {
		t.Error("no instruction uses a vector")
	}
}
