// Package tokens estimates how much of a model's context a text takes.
package tokens

import (
	"unicode"
	"unicode/utf8"
)

// Count estimates the number of o200k tokens in a text. It splits the text into words, numbers,
// punctuation and space, as that tokenizer does first, and adds up the average number of tokens
// for a piece of that kind and length: the tokenizer's table would be a quarter of the program.
// The sum over the catalogues of real servers is within 5 %; a single short text may be further
// off.
func Count(text string) int {
	var tokens float64
	for len(text) > 0 {
		kind, size := piece(text)
		length := utf8.RuneCountInString(text[:size])
		switch kind {
		case 'w':
			tokens += 1 + float64(max(0, length-8))/4.5
		case 'c':
			tokens += 1 + float64(max(0, length-5))/2
		case 'u':
			tokens += float64(length) / 1.6
		case 'h':
			tokens += float64(length) / 1.2
		case 'd':
			tokens += float64((length + 2) / 3)
		case 'p':
			tokens += 1 + float64(max(0, length-3))/3.5
		case 'b':
			tokens += float64(length) / 1.5
		case 's':
			tokens++
		}
		text = text[size:]
	}
	return int(tokens + 0.5)
}

// piece returns the kind and the size in bytes of the first piece of a text. The kinds are w, a
// word with at most one sign or space before it; c, a word in capitals; u, letters that are not
// Latin; h, letters of which few make a word, as in Chinese; d, digits; p, punctuation; s, space;
// b, base64.
func piece(text string) (kind byte, size int) {
	const long = 80
	if len(text) >= long && isBase64(rune(text[long-1])) {
		if size := run(text, isBase64); size >= long {
			return 'b', size
		}
	}
	first, n := utf8.DecodeRuneInString(text)
	next, m := utf8.DecodeRuneInString(text[n:])
	switch {
	case unicode.IsLetter(first):
		return word(text, 0)
	case first != '\n' && first != '\r' && !unicode.IsDigit(first) && m > 0 && unicode.IsLetter(next):
		return word(text, n)
	case unicode.IsDigit(first):
		return 'd', run(text, unicode.IsDigit)
	case unicode.IsSpace(first):
		size = run(text, unicode.IsSpace)
		if size > n && size < len(text) && text[size-1] == ' ' {
			size-- // the last one belongs to what follows
		}
		return 's', size
	}
	return 'p', run(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) })
}

// word returns the word whose letters begin at start. A capital after a small letter begins
// another word.
func word(text string, start int) (kind byte, size int) {
	small := false
	kind, size = 'c', len(text)
	for i, r := range text[start:] {
		switch { // most letters are these
		case 'a' <= r && r <= 'z':
			small = true
			if kind == 'c' {
				kind = 'w'
			}
			continue
		case r < utf8.RuneSelf && (r < 'A' || r > 'Z' || small):
			return kind, start + i
		}
		if !unicode.IsLetter(r) && !unicode.IsMark(r) || small && unicode.IsUpper(r) {
			size = start + i
			break
		}
		small = unicode.IsLower(r)
		switch {
		case r >= 0x2e80:
			kind = 'h'
		case r > 0x24f && kind != 'h':
			kind = 'u'
		case small && kind == 'c':
			kind = 'w'
		}
	}
	return kind, size
}

func isBase64(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '+' || r == '/' || r == '='
}

func run(text string, of func(rune) bool) int {
	for i, r := range text {
		if !of(r) {
			return i
		}
	}
	return len(text)
}
