package describe

import (
	"strings"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
)

// firstSentence returns the first sentence of the first text that says more than the server's
// name, without its opening.
func firstSentence(texts []string, own map[string]bool) string {
	for _, text := range texts {
		line := display.Summary(strings.TrimLeft(text, "#*>- \t\r\n"), 240)
		line = capital(trimmed(line))
		said := 0
		search.Words(line, func(w string) {
			if !search.IsStopWord(w) && !own[w] && !has("mcp server tool usag rule guid instruct overview provid us", w) {
				said++
			}
		})
		if said >= 2 {
			if strings.ContainsFunc(line, unspaced) {
				return strings.TrimRight(line, ".。…") + "。"
			}
			return strings.TrimRight(line, ".") + "."
		}
	}
	return ""
}

// gets are verbs that say less about a tool than their object.
const gets = `get gets retrieve retrieves fetch fetches return returns list lists show shows perform performs provide provides check checks`

// object removes such a verb, and the empty words after it, from a sentence: with many
// servers "Get the current weather" would be cut to "Get the".
func object(sentence string) string {
	verb, rest, ok := strings.Cut(sentence, " ")
	if !ok || !has(gets, strings.ToLower(verb)) {
		return sentence
	}
	for {
		word, after, ok := strings.Cut(rest, " ")
		w := strings.ToLower(word)
		if w == "if" || w == "whether" { // its clause is no object
			return sentence
		}
		if !ok || !search.IsStopWord(termOf(w)) && !has(general, w) && !has(fillers, w) {
			return capital(rest)
		}
		rest = after
	}
}

// openings are beginnings of texts that say nothing about the server. If one begins with
// another, the longer comes first.
var openings = []string{
	"a model context protocol (mcp) server", "model context protocol (mcp) server", "a model context protocol server", "model context protocol server",
	"the official mcp server", "official mcp server", "an mcp server", "a mcp server", "mcp server", "this mcp server", "this server", "the server", "use this server",
	"this tool", "use this tool", "this package", "a server", "server",
	"provides tools", "provides access", "provides", "is used", "is designed", "enables you", "enables", "allows you", "allows", "lets you", "that", "which", "with tools",
	"for interacting with", "for working with", "for using", "to interact with", "to work with", "for", "to", "with",
}

// trimmed removes openings from a sentence: "The X MCP server provides tools to read …"
// becomes "read …".
func trimmed(line string) string {
	for _, name := range []string{" MCP server ", " MCP Server "} {
		if before, after, ok := strings.Cut(line, name); ok && strings.Count(before, " ") < 4 {
			line = after
			break
		}
	}
	for again := true; again; {
		again = false
		line = strings.TrimLeft(line, " ,:-–—")
		for _, o := range openings {
			if len(line) > len(o)+1 && strings.EqualFold(line[:len(o)], o) && line[len(o)] == ' ' {
				line, again = line[len(o)+1:], true
				break
			}
		}
	}
	return line
}
