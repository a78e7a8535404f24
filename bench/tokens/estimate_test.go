package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/dynmcp/dynmcp/internal/tokens"
)

// The estimate is close to the tokenizer for two pages of ours, and for the catalogs of
// real servers if there is a corpus.
func TestTokens(t *testing.T) {
	exact := codec.NewO200kBase()
	check := func(name, text string, tolerance float64) {
		t.Helper()
		want, err := exact.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.Count(text); float64(got) < float64(want)*(1-tolerance) || float64(got) > float64(want)*(1+tolerance) {
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
		all, allExact = all+tokens.Count(string(text)), allExact+n
	}
	if ratio := float64(all) / float64(allExact); len(files) > 0 && (ratio < 0.95 || ratio > 1.05) {
		t.Errorf("of all catalogues %d tokens are estimated, there are %d", all, allExact)
	}
}

// Names of values take more tokens than words, and the estimate considers this.
func TestListsOfValues(t *testing.T) {
	exact := codec.NewO200kBase()
	for _, text := range []string{
		strings.Repeat(`"AURELION_SOL", "MORDEKAISER", "XERATH", `, 50),
		strings.Repeat(`"Team14_Item_StreetDemonEmblem", "TFT5_RabadonsRadiant", `, 50),
		strings.Repeat(`{"type": "string", "description": "What to look for, in words."}, `, 50),
	} {
		real, err := exact.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if about := tokens.Count(text); about < real*2/3 || about > real*3/2 {
			t.Errorf("%.40s: %d tokens by estimate, are %d", text, about, real)
		}
	}
}
