package definition

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// appendCanonical appends a valid JSON value in the form of RFC 8785 (JCS), except for three cases that
// the RFC does not cover, because readers may interpret them differently: integers that no double
// equals keep their digits, unpaired surrogates stay escaped, and duplicate members all stay, in
// order. The libraries for JCS round such numbers, so that 9007199254740993 would have the digest
// of 9007199254740992.
func appendCanonical(dst, value []byte) []byte {
	value = bytes.TrimSpace(value)
	switch value[0] {
	case '{':
		return appendObject(dst, value)
	case '[':
		dst = append(dst, '[')
		first := true
		for element := range wire.Elements(value) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendCanonical(dst, element)
		}
		return append(dst, ']')
	case '"':
		return appendString(dst, value)
	case 't', 'f', 'n':
		return append(dst, value...)
	}
	return append(dst, canonicalNumber(string(value))...)
}

// A member is a member of an object, in canonical form.
type member struct {
	name, text []byte
	order      []uint16 // of the name, in UTF-16
}

func appendObject(dst, object []byte) []byte {
	var members []member
	for name, value := range wire.Members(object) {
		decoded, _ := wire.Text(name)
		members = append(members, member{appendString(nil, name), appendCanonical(nil, value), utf16.Encode([]rune(decoded))})
	}
	slices.SortStableFunc(members, func(a, b member) int {
		return cmp.Or(slices.Compare(a.order, b.order), bytes.Compare(a.name, b.name))
	})
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, m.name...), ':'), m.text...)
	}
	return append(dst, '}')
}

// appendString appends a string, given with its quotes.
func appendString(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			dst = append(dst, text[i])
			i++
		case text[i+1] == 'u':
			var n int
			dst, n = appendEscaped(dst, text[i:])
			i += n
		case text[i+1] == '/':
			dst = append(dst, '/')
			i += 2
		default:
			dst = append(dst, text[i], text[i+1])
			i += 2
		}
	}
	return dst
}

// appendEscaped appends the character of an escape \uXXXX at the beginning of text, or of two
// for a pair of surrogates, and returns their length.
func appendEscaped(dst, text []byte) ([]byte, int) {
	r := codeUnit(text)
	if pair := utf16.DecodeRune(r, codeUnit(text[min(6, len(text)):])); pair != utf8.RuneError {
		return utf8.AppendRune(dst, pair), 12
	}
	if r < 0 {
		return append(dst, text[0]), 1
	}
	if i := strings.IndexRune("\b\t\n\f\r\"\\", r); i >= 0 {
		return append(dst, '\\', "btnfr\"\\"[i]), 6
	}
	if utf16.IsSurrogate(r) || r < ' ' {
		return append(dst, bytes.ToLower(text[:6])...), 6
	}
	return utf8.AppendRune(dst, r), 6
}

// codeUnit returns the value of an escape \uXXXX at the beginning of text, -1 if there is none.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// canonicalNumber returns a number as ECMAScript writes the nearest double, unless that would change an
// integer.
func canonicalNumber(text string) string {
	exact := normalNumber(text)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return exact
	}
	if short := shortestNumber(f); strings.Contains(exact, "e-") || normalNumber(short) == exact {
		return short
	}
	return exact
}

// shortestNumber writes a double as ECMAScript does.
func shortestNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	if abs := max(f, -f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	return strings.Replace(strings.Replace(s, "e-0", "e-", 1), "e+0", "e+", 1)
}

// normalNumber returns a number as an integer that does not end in 0 and an exponent: equal
// numbers have the same form.
func normalNumber(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	e, err := strconv.ParseInt(exponent, 10, 32)
	if exponent != "" && err != nil { // not a number for any reader
		return sign + mantissa + "e" + exponent
	}
	e -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	e += int64(len(digits) - len(short))
	if e == 0 {
		return sign + short
	}
	return sign + short + "e" + strconv.FormatInt(e, 10)
}
