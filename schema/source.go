package schema

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxSource limits the size of a config file. Real ones are a hundredth of it; a
// log file or a device given by mistake is larger.
const maxSource = 1 << 20

// maxDepth limits how deep brackets nest: the parsers recurse, and a stack
// overflow cannot be recovered from.
const maxDepth = 200

const emptyHint = `write {"mcp": {"NAME": {"command": "PROGRAM"}}} to begin with`

// source is the text of a config file, with its name for errors.
type source struct {
	name  string
	data  []byte
	lines [][]byte // of data, set when first needed
}

// check rejects files that are not text, for which a parser's error would be
// misleading. It strips the byte order mark.
func (s *source) check() (what, hint string) {
	s.data = bytes.TrimPrefix(s.data, []byte("\xef\xbb\xbf"))
	switch {
	case len(s.data) > maxSource:
		return "the file is larger than 1 MiB", "is this the config?"
	case len(bytes.TrimSpace(s.data)) == 0:
		return "the file is empty", emptyHint
	case bytes.HasPrefix(s.data, []byte("\xff\xfe")) || bytes.HasPrefix(s.data, []byte("\xfe\xff")):
		return "the file is UTF-16", "save it as UTF-8"
	case bytes.IndexByte(s.data, 0) >= 0 || !utf8.Valid(s.data):
		return "the file is not text", "a config is JSON or YAML in UTF-8"
	case nesting(s.data) > maxDepth:
		return "the file nests too deeply", "a config has no use for more than 200 brackets inside one another"
	}
	return "", ""
}

// nesting is an upper bound of how deep brackets nest: those in strings count too.
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

// IsYAML reports whether a file of this name and content is read as YAML.
func IsYAML(name string, data []byte) bool {
	return len(bytes.TrimSpace(data)) > 0 && (&source{name: name, data: data}).isYAML()
}

// isYAML decides by the file's name, or by its first character if the name does
// not tell.
func (s *source) isYAML() bool {
	switch name := strings.ToLower(s.name); {
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return true
	case strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".jsonc"):
		return false
	}
	return !bytes.ContainsAny(bytes.TrimSpace(s.data)[:1], "{[/")
}

// clamp moves a position that a parser put after the end of a line or of the file
// back to that end.
func (s *source) clamp(p pos) pos {
	if s.lines == nil {
		s.lines = bytes.Split(s.data, []byte("\n"))
	}
	p.line = min(max(p.line, 1), len(s.lines))
	width := utf8.RuneCount(bytes.TrimSuffix(s.lines[p.line-1], []byte("\r")))
	p.col = min(max(p.col, 1), width+1)
	return p
}

// cursor turns byte offsets into positions, in one pass over the file as long as
// they increase.
type cursor struct {
	data   []byte
	offset int
	pos    pos
}

func (c *cursor) to(offset int) pos {
	if offset < c.offset || c.pos.line == 0 {
		c.offset, c.pos = 0, pos{1, 1}
	}
	for _, r := range string(c.data[c.offset:offset]) {
		c.pos.col++
		if r == '\n' {
			c.pos = pos{c.pos.line + 1, 1}
		}
	}
	c.offset = offset
	return c.pos
}
