// Package display prepares untrusted texts for display: short, on one line, without invisible
// characters, unable to end a block of ours.
package display

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// LineWidth is the longest text of one tool's line, in UTF-16 units.
const LineWidth = 120

// Units counts UTF-16 units, in which hosts measure text.
func Units[T ~string | ~[]byte](s T) int {
	n := 0
	for _, r := range string(s) {
		n += utf16.RuneLen(r)
	}
	return n
}

// Cut shortens s to at most max units, at a space if one is near, and ends it
// with an ellipsis. It cuts between characters, before anything is escaped.
func Cut(s string, max int) string {
	if len(s) <= max || Units(s) <= max { // no character has fewer bytes than units
		return s
	}
	if max < 1 {
		return ""
	}
	head := strings.TrimRight(Prefix(s, max-1), " ")
	if i := strings.LastIndexByte(head, ' '); i > len(head)*2/3 {
		head = head[:i]
	}
	return strings.TrimRight(head, " ,;:-") + "…"
}

// Prefix returns the longest start of s with at most max UTF-16 units.
func Prefix(s string, max int) string {
	n := 0
	for i, r := range s {
		if n += utf16.RuneLen(r); n > max {
			return s[:i]
		}
	}
	return s
}

// MostName is the longest name of a peer's choice, in characters, that Label returns.
const MostName = 200

// Label returns the name that a host, a server or a user has for itself or for a thing, cut at
// MostName characters. It is the one place where names are cut for records, log lines, metrics and
// pages: sessions, reported calls and the log's handler use it. The result does not keep s in memory.
func Label(s string) string {
	if len(s) <= MostName {
		return s
	}
	left := MostName
	for i := range s {
		if left--; left < 0 {
			return strings.Clone(s[:i])
		}
	}
	return s
}

// Fold puts s on one line: runs of white space become one space, invisible characters are
// removed.
func Fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
		case Invisible(r):
		default:
			if space {
				b.WriteByte(' ')
				space = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Clean removes invisible characters and keeps line breaks and tabs: text of several lines. It
// keeps a variation selector that fits the character before it.
func Clean(s string) string {
	before := rune(-1)
	return strings.Map(func(r rune) rune {
		last := before
		before = r
		if r != '\n' && r != '\t' && Invisible(r) && !varies(last, r) {
			return -1
		}
		return r
	}, s)
}

// varies reports whether a variation selector may follow a character: one of those for emoji,
// digits in keys and other symbols, or one for an ideograph. Runs of them, and those after
// letters, carry hidden text.
func varies(last, selector rune) bool {
	switch {
	case selector == 0xFE0E || selector == 0xFE0F:
		return unicode.IsSymbol(last) && last > unicode.MaxASCII || unicode.In(last, unicode.Po, unicode.Nd) && last <= 0x303D
	case unicode.Is(unicode.Variation_Selector, selector):
		return unicode.Is(unicode.Han, last)
	}
	return false
}

// Invisible reports characters that display nothing and can carry hidden text or reorder the
// visible text: control and format characters (zero-width, bidi, tags), line separators,
// variation selectors, blank letters, noncharacters.
func Invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7F
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector) ||
		r == 0x034F || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || // joiners and fillers
		r == 0x2800 || r == 0x3164 || r == 0xFFA0 ||
		r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF ||
		r >= 0xE0000 && r <= 0xE0FFF
}

// Visible replaces the characters that are hidden with \u{…}, and bytes that are no UTF-8 with \x….
func Visible(s string, hidden func(rune) bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || hidden(r) }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape prevents s from opening or closing a block of ours. Cut before: an entity must stay
// whole.
func Escape(s string) string { return entities.Replace(s) }

var unentities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// Unescape reverses Escape, for names that a model read in an escaped line.
func Unescape(s string) string { return unentities.Replace(s) }

// Summary reduces a description to one line of at most max units: its first
// sentence, folded.
func Summary(s string, max int) string {
	return Cut(Fold(sentence(s)), max)
}

// sentence returns the first sentence of s. A sentence ends at a full stop, at
// a blank line, and before a list or heading.
func sentence(s string) string {
	const enough = 4096 // bytes; no line shows more, some descriptions are huge
	s = strings.TrimSpace(s)
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "")
	}
	for i, r := range s {
		end := i + utf8.RuneLen(r)
		switch r {
		case '\n':
			if breaks(s[:i], s[end:]) {
				return s[:i]
			}
		case '.', '!', '?':
			if stops(s[:i], s[end:]) {
				return s[:end]
			}
		case '。', '！', '？':
			return s[:end]
		}
	}
	return s
}

// breaks reports whether a line break between before and after ends a sentence rather than
// wraps it. After a colon or a single word it does not: that was a heading, and the next line
// is the point.
func breaks(before, after string) bool {
	if strings.HasSuffix(strings.TrimRight(before, " \t\r*"), ":") || fewWords(before) {
		return false
	}
	after = strings.TrimLeft(after, " \t\r")
	return after == "" || strings.ContainsRune("\n-*#•|`<", rune(after[0])) || strings.HasPrefix(after, "1.")
}

func fewWords(s string) bool {
	n := 0
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, unicode.IsLetter) {
			n++
		}
	}
	return n < 2
}

// stops reports whether a full stop between before and after ends a sentence. "e.g. x", "1. x"
// and "a. small letter" do not.
func stops(before, after string) bool {
	if after != "" && !strings.ContainsRune(" \t\r\n", rune(after[0])) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " \t\r\n"))
	word := before[strings.LastIndexAny(before, " \t\n(")+1:]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "eg", "ie", "vs", "cf", "approx", "incl", "":
		return false
	}
	return !unicode.IsLower(next) && strings.Trim(word, "0123456789") != ""
}

// FirstLine returns the summary of the first text that has one, in LineWidth units.
func FirstLine(texts ...string) string {
	for _, s := range texts {
		if line := Summary(s, LineWidth); line != "" {
			return line
		}
	}
	return ""
}

// Asked shortens a name or query of a request for display in the answer.
func Asked(text string) string { return Cut(Fold(text), 100) }

// Quote writes s as a JSON string.
func Quote(s string) string { return string(wire.Quote(s)) }

// Name quotes a name from outside, shortened, for a warning.
func Name(name string) string { return Quote(Cut(Fold(name), 60)) }

// Object writes pairs of a name and a text as a JSON object, without pairs whose text is
// empty; the first one is always there.
func Object(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if i == 0 || pairs[i+1] != "" {
			b.WriteString(`,"` + pairs[i] + `":` + Quote(pairs[i+1]))
		}
	}
	return "{" + b.String()[1:] + "}"
}

// JSON returns valid JSON that means the same, with invisible characters as
// \u escapes. Outside strings there are none but white space.
func JSON(raw json.RawMessage) string {
	var b strings.Builder
	b.Grow(len(raw))
	for _, r := range string(raw) {
		switch {
		case r < ' ' || !Invisible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Plural counts things: "1 tool", "2 tools", "2 queries".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		thing = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
