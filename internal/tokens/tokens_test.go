package tokens

import (
	"strings"
	"testing"
)

// The counts are those of o200k; bench/tokens compares more texts with it.
func TestCount(t *testing.T) {
	for _, text := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"hello", 1},
		{strings.Repeat("Searches issues and pull requests of a repository. ", 20), 182},
		{strings.Repeat(`{"type": "string", "description": "What to look for, in words."}, `, 50), 951},
		{strings.Repeat(`"AURELION_SOL", "MORDEKAISER", "XERATH", `, 50), 1000},
	} {
		if got := Count(text.text); got < text.want*4/5 || got > text.want*5/4 {
			t.Errorf("%.40s: got %d tokens, want about %d", text.text, got, text.want)
		}
	}
}
