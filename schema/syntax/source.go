package syntax

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
)

// MaxSize limits the size of a config file. Real ones have a hundredth of it; a log file or a
// device given by mistake is larger.
const MaxSize = 1 << 20

// maxDepth limits the nesting of brackets: the parsers recurse, and a stack overflow cannot
// be recovered from.
const maxDepth = 200

var byteOrderMark = []byte("\xef\xbb\xbf")

// EmptyHint says what to write into an empty file.
const EmptyHint = `write {"mcp": {"NAME": {"command": "PROGRAM"}}} to begin with`

// Source is the text of a config file, with its name for errors.
type Source struct {
	Name  string
	Data  []byte
	lines [][]byte // of data, set when first needed
}

// check rejects files that are not text, for which a parser's error would mislead. It strips
// the byte order mark.
func (s *Source) check() (what, hint string) {
	s.Data = bytes.TrimPrefix(s.Data, byteOrderMark)
	switch {
	case len(s.Data) > MaxSize:
		return "the file is larger than 1 MiB", "is this the config?"
	case len(bytes.TrimSpace(s.Data)) == 0:
		return "the file is empty", EmptyHint
	case bytes.HasPrefix(s.Data, []byte("\xff\xfe")) || bytes.HasPrefix(s.Data, []byte("\xfe\xff")):
		return "the file is UTF-16", "save it as UTF-8"
	case bytes.IndexByte(s.Data, 0) >= 0 || !utf8.Valid(s.Data):
		return "the file is not text", "a config is JSON or YAML in UTF-8"
	case nesting(s.Data) > maxDepth:
		return "the file nests too deeply", "a config needs at most 200 brackets inside one another"
	}
	return "", ""
}

// nesting returns an upper bound of the nesting of brackets: those in strings count too.
func nesting(data []byte) int {
	depth, most := 0, 0
	for _, c := range data {
		switch c {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth = max(0, depth-1)
		}
	}
	return most
}

// IsYAML reports whether a file is read as YAML: by its name, or by its first character
// if the name does not tell. An empty one is not.
func IsYAML(name string, data []byte) bool {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, byteOrderMark))
	switch name := strings.ToLower(name); {
	case len(data) == 0:
		return false
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return true
	case strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".jsonc"), IsTOML(name):
		return false
	}
	return !bytes.ContainsAny(data[:1], "{[/")
}

// Parse parses JSON, YAML or, by the name of the file, TOML or JSON5. Its error is of the type Errors.
func (s *Source) Parse() (*Node, error) {
	if what, hint := s.check(); what != "" {
		return nil, s.failure(Pos{1, 1}, what, hint)
	}
	switch name := strings.ToLower(s.Name); {
	case IsTOML(name):
		return parseTOML(s)
	case strings.HasSuffix(name, ".json5") || strings.HasSuffix(name, "openclaw.json"):
		return parseJSON(&Source{Name: s.Name, Data: JSONOf5(s.Data)})
	case IsYAML(s.Name, s.Data):
		return parseYAML(s)
	}
	return parseJSON(s)
}

// ErrorAt returns an error at a position. A position after the end of a line or of the file
// is moved back to that end.
func (s *Source) ErrorAt(p Pos, path, what, hint string) *Error {
	if s.lines == nil {
		s.lines = bytes.Split(s.Data, []byte("\n"))
	}
	line := min(max(p.Line, 1), len(s.lines))
	width := utf8.RuneCount(bytes.TrimSuffix(s.lines[line-1], []byte("\r")))
	column := min(max(p.Col, 1), width+1)
	return &Error{File: s.Name, Line: line, Column: column, Path: path, Err: errors.New(what), Hint: hint}
}

func (s *Source) failure(p Pos, what, hint string) error {
	return Errors{s.ErrorAt(p, "", what, hint)}
}

// cursor converts byte offsets to positions, in one pass over the file while they increase.
type cursor struct {
	data   []byte
	offset int
	pos    Pos
}

func (c *cursor) to(offset int) Pos {
	if offset < c.offset || c.pos.Line == 0 {
		c.offset, c.pos = 0, Pos{1, 1}
	}
	for _, r := range string(c.data[c.offset:offset]) {
		c.pos.Col++
		if r == '\n' {
			c.pos = Pos{c.pos.Line + 1, 1}
		}
	}
	c.offset = offset
	return c.pos
}
