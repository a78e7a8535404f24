package lock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/definition"
)

// A lock file is lines of words, sorted, so that a change of one tool is a change of one
// line:
//
//	dynmcp-lock 1
//	server files npm:@modelcontextprotocol/server-filesystem@2025.8.21
//	tool files read_file sha256:e3b0c442…
//
// A word with characters other than those of names is a quoted Go string, in ASCII: names that look
// alike elsewhere differ here. Empty lines and those that begin with # are ignored, and
// dropped.
const (
	lockMagic   = "dynmcp-lock"
	lockVersion = "1"
	lockHead    = `# The definitions of tools that are pinned or approved: "dynmcp diff" compares, "dynmcp approve" changes them.` + "\n"
)

// A Lock is the content of a lock file, by server.
type Lock map[string]*Server

// A Server is the part of a lock for one server.
type Server struct {
	Package string            // that its command runs, with its version; "" if unknown
	Tools   map[string]string // digests by name
}

// Parse reads the text of a lock file.
func Parse(text []byte) (Lock, error) {
	l := Lock{}
	n, begun := 0, false
	var room [4]string
	for line := range strings.Lines(string(text)) {
		n++
		words, err := readWords(strings.TrimRight(line, "\r\n"), room[:0])
		switch {
		case err != nil:
		case len(words) == 0:
			continue
		case !begun:
			begun = true
			err = checkHead(words)
		default:
			err = l.add(words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if !begun {
		return nil, errors.New("it is empty")
	}
	return l, nil
}

func checkHead(words []string) error {
	switch {
	case len(words) != 2 || words[0] != lockMagic:
		return fmt.Errorf("want %q", lockMagic+" "+lockVersion)
	case words[1] != lockVersion:
		return errors.New("it was written by another version of dynmcp")
	}
	return nil
}

// add adds the content of a line.
func (l Lock) add(words []string) error {
	switch {
	case words[0] == "server" && (len(words) == 2 || len(words) == 3):
		if l[words[1]] != nil {
			return fmt.Errorf("the server %q is there twice", words[1])
		}
		l[words[1]] = &Server{Package: strings.Join(words[2:], ""), Tools: map[string]string{}}
		return nil
	case words[0] == "tool" && len(words) == 4 && definition.IsDigest(words[3]):
		server := l[words[1]]
		if server == nil {
			return fmt.Errorf("a tool of %q, for which there is no server line before", words[1])
		}
		if server.Tools[words[2]] != "" {
			return fmt.Errorf("the tool %q of %q is there twice", words[2], words[1])
		}
		server.Tools[words[2]] = words[3]
		return nil
	}
	if slices.Contains([]string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"}, words[0]) {
		return errors.New("a merge conflict is not resolved")
	}
	return errors.New(`want "server NAME [PACKAGE]" or "tool SERVER NAME sha256:DIGEST"`)
}

// readWords appends the words of a line, none of an empty line or a comment.
func readWords(line string, words []string) ([]string, error) {
	if strings.HasPrefix(line, "#") {
		return nil, nil
	}
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			var word string
			word, line, _ = strings.Cut(line, " ")
			words = append(words, word)
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, errors.New("a quote is not closed")
		}
		word, _ := strconv.Unquote(quoted)
		words, line = append(words, word), line[len(quoted):]
	}
	return words, nil
}

// Text returns the text of the lock file.
func (l Lock) Text() []byte {
	b := []byte(lockHead + lockMagic + " " + lockVersion + "\n")
	for _, name := range slices.Sorted(maps.Keys(l)) {
		server := l[name]
		b = append(b, "server "+word(name)...)
		if server.Package != "" {
			b = append(b, " "+word(server.Package)...)
		}
		b = append(b, '\n')
		for _, tool := range slices.Sorted(maps.Keys(server.Tools)) {
			b = append(b, "tool "+word(name)+" "+word(tool)+" "+server.Tools[tool]+"\n"...)
		}
	}
	return b
}

// word writes a word of a line.
func word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@:+=~^"
	if s == "" || strings.Trim(s, plain) != "" {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// Set replaces the pins of a server.
func (l Lock) Set(server, runs string, tools []definition.Tool) {
	l[server] = &Server{Package: runs, Tools: make(map[string]string, len(tools))}
	for _, t := range tools {
		l[server].Tools[t.Name] = t.Digest
	}
}
