package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// The estimate is near what the tokenizer says: of each catalogue of a real server,
// where they are there, and of two of our own pages.
func TestEstimateTokens(t *testing.T) {
	exact := codec.NewO200kBase()
	check := func(name, text string, tolerance float64) {
		t.Helper()
		want, err := exact.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := estimateTokens(text); float64(got) < float64(want)*(1-tolerance) || float64(got) > float64(want)*(1+tolerance) {
			t.Errorf("%s: got %d tokens, want %d", name, got, want)
		}
	}
	for _, file := range []string{"../../README.md", "../../docs/config.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		check(file, string(text), 0.10)
	}
	files, err := filepath.Glob("../../../shared/corpus/servers/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all, allExact int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = text[:min(len(text), 200<<10)]
		check(file, string(text), 0.12)
		n, _ := exact.Count(string(text))
		all, allExact = all+estimateTokens(string(text)), allExact+n
	}
	if ratio := float64(all) / float64(allExact); len(files) > 0 && (ratio < 0.95 || ratio > 1.05) {
		t.Errorf("of all catalogues %d tokens are estimated, there are %d", all, allExact)
	}
}
