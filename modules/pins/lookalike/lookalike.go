// Package lookalike recognises names that people and models confuse.
package lookalike

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letters are the letters of other scripts, and the digits, that look like Latin lower-case letters.
// They are the part of Unicode's confusables.txt (UTS 39) that is used to forge tool names.
var letters = strings.NewReplacer(
	// Cyrillic
	"а", "a", "в", "b", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "l", "ј", "j", "к", "k", "ӏ", "l", "м", "rn", "о", "o", "р", "p", "ԛ", "q",
	"ѕ", "s", "т", "t", "ѵ", "v", "ԝ", "w", "х", "x", "у", "y",
	// Greek
	"α", "a", "β", "b", "γ", "y", "ε", "e", "ζ", "z", "η", "n", "ι", "l", "κ", "k", "μ", "m", "ν", "v", "ο", "o", "ρ", "p", "σ", "o", "ς", "s",
	"τ", "t", "υ", "u", "χ", "x",
	// Latin and Armenian
	"ı", "l", "ɩ", "l", "ɑ", "a", "ɡ", "g", "ſ", "f", "ʀ", "r", "օ", "o", "ս", "u", "հ", "h", "ո", "n", "զ", "q", "ց", "g",
	// ASCII
	"0", "o", "1", "l", "i", "l", "|", "l", "m", "rn",
	// hyphens and low lines
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-", "ˍ", "_",
)

// capitals are capitals that look like another letter than their lower-case forms do.
var capitals = strings.NewReplacer("Η", "h", "Ν", "n", "Υ", "y", "Н", "h")

// Skeleton returns a common form of names that look alike: two names look alike if they differ and
// their skeletons do not. Case and accents are ignored.
func Skeleton(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Variation_Selector) {
			return -1
		}
		return unicode.ToLower(r)
	}, capitals.Replace(norm.NFKD.String(name)))
	return letters.Replace(name)
}
