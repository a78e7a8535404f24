package names

import (
	"cmp"
	"strings"
)

// A template is a URI template (RFC 6570) of a server.
type template struct {
	server   string
	literals []string // in normal form, around its expressions
	length   int      // of the literals
}

func newTemplate(server, text string) template {
	t := template{server: server}
	for first := true; ; first = false {
		literal, rest, more := strings.Cut(text, "{")
		if first {
			literal = normal(literal)
		} else {
			literal = encoded(literal)
		}
		t.literals, t.length = append(t.literals, literal), t.length+len(literal)
		if !more {
			return t
		}
		_, text, _ = strings.Cut(rest, "}")
	}
}

// shape identifies the templates that match the same URIs.
func (t template) shape() string { return strings.Join(t.literals, "{}") }

func shapeOf(text string) string { return newTemplate("", text).shape() }

// compare orders templates: the most specific first.
func (t template) compare(other template) int {
	return cmp.Or(cmp.Compare(len(other.literals[0]), len(t.literals[0])), cmp.Compare(other.length, t.length))
}

// matches reports whether a URI in normal form may be an expansion. Hosts differ in what they encode of
// the values: an expression matches any text.
func (t template) matches(uri string) bool {
	rest, ok := strings.CutPrefix(uri, t.literals[0])
	last := len(t.literals) - 1
	if !ok || last == 0 {
		return ok && rest == ""
	}
	if rest, ok = strings.CutSuffix(rest, t.literals[last]); !ok {
		return false
	}
	for _, literal := range t.literals[1:last] {
		if _, rest, ok = strings.Cut(rest, literal); !ok {
			return false
		}
	}
	return true
}

// normal returns the form in which URIs are compared: percent-encoded as templates expand them (RFC 6570,
// 3.1), but not what needs no encoding (RFC 3986, 6.2.2.2), with the scheme in lower case.
func normal(uri string) string {
	if i := strings.IndexByte(uri, ':'); i > 0 && !strings.ContainsAny(uri[:i], "/?#%{") {
		return strings.ToLower(uri[:i]) + encoded(uri[i:])
	}
	return encoded(uri)
}

// encoded returns a part of a URI in normal form.
func encoded(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	from := 0 // what was not written yet
	for i := 0; i < len(text); i++ {
		c, size := text[i], 1
		if plain[c] {
			continue
		}
		if decoded, ok := octet(text[i:]); ok {
			c, size = decoded, 3
		}
		b.WriteString(text[from:i])
		if unreserved[c] {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
		i += size - 1
		from = i + 1
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// octet reads a percent-encoded octet.
func octet(text string) (c byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	for _, digit := range []byte(text[1:3]) {
		switch {
		case '0' <= digit && digit <= '9':
			c = c<<4 | (digit - '0')
		case 'a' <= digit|0x20 && digit|0x20 <= 'f':
			c = c<<4 | (digit | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return c, true
}

// unreserved and plain are the characters that never need encoding, and those that need none as
// delimiters.
var unreserved, plain = func() (unreserved, plain [256]bool) {
	for c := range unreserved {
		unreserved[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.ContainsRune("-._~", rune(c))
		plain[c] = unreserved[c] || strings.ContainsRune(":/?#[]@!$&'()*+,;=", rune(c))
	}
	return unreserved, plain
}()

// authority returns the scheme and authority of a URI in normal form, "" without a scheme. whole reports
// that more follows: a template has them in its literal text then.
func authority(uri string) (at string, whole bool) {
	i := strings.IndexByte(uri, ':')
	if i <= 0 {
		return "", false
	}
	rest, ok := strings.CutPrefix(uri[i+1:], "//")
	if !ok {
		return uri[:i+1], true
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return uri[:i+3+end], true
	}
	return uri, false
}
