// Package lookalike tells names that people and models take for one another.
package lookalike

import (
	"strings"
	"unicode"
)

// letters are the letters of other scripts, and the digits, that look like Latin letters.
// It is the part of Unicode's confusables.txt (UTS 39) that tool names are forged with.
var letters = strings.NewReplacer(
	// Cyrillic
	"а", "a", "в", "b", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "i", "ј", "j", "к", "k", "ӏ", "l", "м", "rn", "о", "o", "р", "p", "ԛ", "q",
	"ѕ", "s", "т", "t", "υ", "u", "ѵ", "v", "ԝ", "w", "х", "x", "у", "y",
	"А", "A", "В", "B", "С", "C", "Е", "E", "Н", "H", "І", "l", "Ј", "J", "К", "K", "М", "M", "О", "O", "Р", "P", "Ѕ", "S", "Т", "T", "Х", "X",
	// Greek
	"α", "a", "γ", "y", "ε", "e", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "σ", "o", "τ", "t", "χ", "x",
	"Α", "A", "Β", "B", "Ε", "E", "Ζ", "Z", "Η", "H", "Ι", "l", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O", "Ρ", "P", "Τ", "T", "Υ", "Y", "Χ", "X",
	// Latin and Armenian
	"ı", "i", "ɩ", "i", "ɑ", "a", "ɡ", "g", "ſ", "f", "ʀ", "r", "օ", "o", "ս", "u", "հ", "h", "ո", "n", "զ", "q", "ց", "g",
	// ASCII
	"0", "O", "1", "l", "I", "l", "|", "l", "m", "rn",
	// hyphens and low lines
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-", "ˍ", "_",
)

// Skeleton returns what names have in common that look the same: two names look alike if
// they differ and their skeletons do not.
func Skeleton(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0xFF01 && r <= 0xFF5E: // full width
			return r - 0xFF01 + '!'
		case r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Variation_Selector):
			return -1
		}
		return r
	}, name)
	return letters.Replace(name)
}

// Alike reports whether two different names look the same.
func Alike(a, b string) bool { return a != b && Skeleton(a) == Skeleton(b) }
