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

// A canary is a secret that nothing prints by itself: two words, and between
// them what URLs, JSON and others write in their own way. A text that holds
// either word, as it is or coded, holds the secret or a part of it. No encoding
// of text changes a word, so what is looked for as it is finds URLs and JSON.
type canary struct {
	name  string // the variable that holds it
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
			between = "-" // the rest may not stand there
		}
		c.value = c.words[0] + between + c.words[1]
		all[i] = c
	}
	return all
}

// environ returns the variables of canaries.
func environ(all []canary) []string {
	var env []string
	for _, c := range all {
		env = append(env, c.name+"="+c.value)
	}
	return env
}

// in returns where text holds a part of the canary, -1 if it does not.
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

// codes returns a word as it is, in hex, and as base64 holds it wherever it
// begins, less the characters that its neighbours have a part in.
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

// spoken returns a secret as programs print it, a line each: as it is, in URLs,
// JSON, Go, hex, and in base64 behind none, one and two other characters.
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

// quote writes a text as JSON.
func quote(text string) string {
	code, _ := json.Marshal(text) // a string has an encoding
	return string(code)
}
