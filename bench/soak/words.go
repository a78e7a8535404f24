package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A canary is a unique secret: two words with characters between them that URLs, JSON and
// other formats escape. A text that has either word, plain or in an encoding of codes, has a
// part of the secret. Escapes do not change the words, so they are also found in URLs and
// JSON.
type canary struct {
	name  string // of its variable
	value string
	words [2]string
}

func newCanaries(names ...string) []canary {
	all := make([]canary, len(names))
	for i, name := range names {
		c := canary{name: name}
		for w := range c.words {
			c.words[w] = rand.Text()[:16]
		}
		between := `/ä"\+`
		if name == "USERINFO" {
			between = "-" // the other characters are not allowed there
		}
		c.value = c.words[0] + between + c.words[1]
		all[i] = c
	}
	return all
}

// environ returns environment variables with the canaries.
func environ(all []canary) []string {
	var env []string
	for _, c := range all {
		env = append(env, c.name+"="+c.value)
	}
	return env
}

// in returns the index of a part of the canary in text, or -1.
func (c canary) in(text string) int {
	for _, word := range c.words {
		for _, form := range codes(word) {
			if at := strings.Index(text, form); at >= 0 {
				return at
			}
		}
	}
	return -1
}

// codes returns a word as it is, in hex, and in base64 at each of the three offsets,
// without the characters that also depend on the text around it.
func codes(word string) []string {
	code := hex.EncodeToString([]byte(word))
	all := []string{word, code, strings.ToUpper(code)}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + word))
		first := []int{0, 2, 3}[before]
		all = append(all, text[first:(before+len(word))*8/6])
	}
	return all
}

// spoken returns lines with a secret as programs print it: as it is, in URLs, JSON, Go, hex,
// and in base64 after zero to two other characters.
func spoken(value string) []string {
	code := hex.EncodeToString([]byte(value))
	lines := []string{
		"refused: " + value, url.QueryEscape(value), url.PathEscape(value), quote(value), strconv.Quote(value), strconv.QuoteToASCII(value), code, strings.ToUpper(code),
		fmt.Sprintf("%q", quote(value)),
	}
	for before := range 3 {
		text := []byte("xxx"[:before] + value)
		lines = append(lines, base64.StdEncoding.EncodeToString(text), base64.URLEncoding.EncodeToString(text))
	}
	return lines
}

// quote returns a text as JSON.
func quote(text string) string {
	code, _ := json.Marshal(text) // strings do not fail
	return string(code)
}
