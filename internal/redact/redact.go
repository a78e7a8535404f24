// Package redact removes secrets from text that leaves the process: logs, errors, the stderr of
// children.
//
// It searches for values, not patterns: those that the config got from variables, headers and
// tokens, in the encodings in which a program may print them. It hides nothing else.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// shortest is the length of the shortest value that is hidden: shorter ones, like "true" or a
// port, would match too much that is not secret.
const shortest = 6

// A Redactor hides values. The zero value and nil hide nothing. It is safe for
// concurrent use.
type Redactor struct {
	known   atomic.Bool           // there is a value
	current atomic.Pointer[forms] // nil until a text is redacted after a change

	mu     sync.Mutex
	values []string
	slots  map[string][]string // values that get replaced, the newest last
	full   *forms              // of all values but the fresh ones, and of some that were replaced; nil if it is out of date
	fresh  []string
}

// maxFresh is how many values may be fresh. With the tokens of many users it takes long to compute the
// forms of all values, and every refresh of one has new ones.
const maxFresh = 256

// perSlot is how many values of a slot are hidden.
const perSlot = 16

// forms are the encoded values to look for.
type forms struct {
	first             [256]bool           // by the first byte
	by                map[string][]string // by the first bytes, as many as all have, the longest first
	longest, shortest int
	more              *forms // of fresh values; may be nil
}

// Add adds values to hide. Values cannot be removed: a secret of an old config stays secret.
func (r *Redactor) Add(values ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range parts(values) {
		if !slices.Contains(r.values, part) {
			r.values = append(r.values, part)
			r.noteLocked(part)
		}
	}
}

// Rotate adds values that get replaced, such as tokens. Only the newest of a slot are hidden, a
// few times as many as are in use at once, so that the memory of a process that refreshes
// them for months does not grow.
func (r *Redactor) Rotate(slot string, values ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.slots[slot]
	for _, part := range parts(values) {
		if at := slices.Index(kept, part); at >= 0 {
			kept = slices.Delete(kept, at, at+1)
		} else {
			r.noteLocked(part)
		}
		kept = append(kept, part)
	}
	if r.slots == nil {
		r.slots = map[string][]string{}
	}
	r.slots[slot] = kept[max(0, len(kept)-perSlot):]
}

// noteLocked notes a new value.
func (r *Redactor) noteLocked(value string) {
	r.fresh = append(r.fresh, value)
	r.known.Store(true)
	r.current.Store(nil)
}

// renew computes the forms after a change.
func (r *Redactor) renew() *forms {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.current.Load(); f != nil {
		return f
	}
	if r.full == nil || len(r.fresh) > maxFresh {
		all := slices.Clone(r.values)
		for _, values := range r.slots {
			all = append(all, values...)
		}
		r.full, r.fresh = newForms(all), nil
	}
	f := *r.full
	if len(r.fresh) > 0 {
		f.more = newForms(r.fresh)
		f.longest = max(f.longest, f.more.longest)
	}
	r.current.Store(&f)
	return &f
}

// parts returns the texts to search for. A value of several lines, like a private key, may be
// printed line by line.
func parts(values []string) []string {
	var all []string
	for _, v := range values {
		for _, part := range append(strings.Split(v, "\n"), v) {
			if part = strings.TrimSpace(part); len(part) >= shortest && !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

func newForms(values []string) *forms {
	var all []string
	for _, v := range values {
		all = append(all, formsOf(v)...)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	all = slices.Compact(all)
	f := &forms{by: map[string][]string{}, longest: len(all[0]), shortest: len(all[len(all)-1])}
	for _, form := range all {
		f.first[form[0]] = true
		begin := form[:f.shortest]
		f.by[begin] = append(f.by[begin], form)
	}
	return f
}

// A span is the part of a text that a form takes.
type span struct{ from, to int }

// spans returns the longest form at each place of the text, in order. They may overlap.
func (f *forms) spans(text string) (all []span) {
	all = f.own(text)
	if f.more != nil {
		if more := f.more.own(text); more != nil {
			all = append(all, more...)
			slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		}
	}
	return all
}

// own returns spans without those of more.
func (f *forms) own(text string) (all []span) {
	for i := range len(text) - f.shortest + 1 {
		if !f.first[text[i]] {
			continue
		}
		for _, form := range f.by[text[i:i+f.shortest]] {
			if strings.HasPrefix(text[i:], form) {
				all = append(all, span{i, i + len(form)})
				break
			}
		}
	}
	return all
}

// hide returns the text with each run of overlapping spans replaced by Mark.
func hide(text string, spans []span) string {
	var b strings.Builder
	end := 0
	for _, s := range spans {
		if s.from >= len(text) {
			break
		}
		if s.from >= end {
			b.WriteString(text[end:s.from])
			b.WriteString(Mark)
		}
		end = max(end, min(s.to, len(text)))
	}
	b.WriteString(text[end:])
	return b.String()
}

// String returns text with every secret in it replaced by Mark.
func (r *Redactor) String(text string) string {
	f := r.load()
	if f == nil {
		return text
	}
	spans := f.spans(text)
	if len(spans) == 0 {
		return text
	}
	return hide(text, spans)
}

// Split redacts text from a stream. The rest, which may be the beginning of a secret, is not
// redacted: it must be prepended to the next text.
func (r *Redactor) Split(text string) (safe, rest string) {
	f := r.load()
	if f == nil {
		return text, ""
	}
	spans := f.spans(text)
	cut := max(0, len(text)-f.longest+1) // a secret before it is complete
	for _, s := range spans {
		if s.from < cut && s.to > cut {
			cut = s.from
		}
	}
	return hide(text[:cut], spans), text[cut:]
}

func (r *Redactor) load() *forms {
	if r == nil {
		return nil
	}
	if !r.known.Load() {
		return nil
	}
	if f := r.current.Load(); f != nil {
		return f
	}
	return r.renew()
}

// Writer returns a writer that redacts what it writes to w. A secret is found only
// within one call of Write, so its callers must write whole lines.
func (r *Redactor) Writer(w io.Writer) io.Writer { return &writer{r, w} }

type writer struct {
	redactor *Redactor
	to       io.Writer
}

func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.redactor.String(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// formsOf returns a value in plain text and encoded for URLs, JSON, Go, base64 and hex.
func formsOf(v string) []string {
	all := []string{v}
	for _, stays := range stayInURLs {
		for _, escape := range []string{"%%%02X", "%%%02x"} {
			escaped := escapedForURL(v, stays, escape)
			all = append(all, escaped, strings.ReplaceAll(escaped, "%20", "+"))
		}
	}
	for _, quoted := range []string{asJSON(v, true), asJSON(v, false), strconv.Quote(v), strconv.QuoteToASCII(v)} {
		inner := withoutQuotes(quoted)
		all = append(all, inner, withoutQuotes(strconv.Quote(inner))) // a quoted value in a quoted message
	}
	code := hex.EncodeToString([]byte(v))
	all = append(all, code, strings.ToUpper(code))
	return append(all, base64Forms(v)...)
}

// stayInURLs are the characters, beside letters and digits, that functions for URLs leave as they are.
var stayInURLs = []string{
	"-_.~", "-_.~$&+=:@", // QueryEscape and PathEscape of Go
	"-_.!~*'()", "-_.!~*'();/?:@&=+$,#", "-_.*", // encodeURIComponent, encodeURI and URLSearchParams of JavaScript
	"-_.~/", // quote of Python
}

func escapedForURL(v, stays, escape string) string {
	var b []byte
	for _, c := range []byte(v) {
		if '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || strings.IndexByte(stays, c) >= 0 {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, escape, c)
		}
	}
	return string(b)
}

func withoutQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

func asJSON(v string, forHTML bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(forHTML)
	_ = encoder.Encode(v) // a string has an encoding
	return strings.TrimSuffix(b.String(), "\n")
}

// base64Forms returns the base64 encodings of a value at any offset in a longer
// text, without the characters that also encode neighbouring bytes.
func base64Forms(v string) []string {
	var all []string
	for before := range 3 {
		text := []byte(strings.Repeat("\x00", before) + v)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			code := encoding.EncodeToString(text)
			if len(text)%3 != 0 {
				code = code[:len(code)-1]
			}
			if before > 0 {
				code = code[before+1:]
			}
			all = append(all, code)
		}
	}
	return all
}
