// Package costs counts what a model reads of tools.
package costs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/tokens"
)

// Counts compare the tokens that a model reads of the tools with every server in the host's own
// config and through dynmcp.
type Counts struct {
	Tokenizer string `json:"tokenizer"`

	// The texts at the start of every session.
	Servers []serverTokens `json:"servers"`
	Direct  int            `json:"direct"`
	Through int            `json:"dynmcp"` // including dynmcp's own tools and instructions
}

// A serverTokens holds the counts of one server.
type serverTokens struct {
	Name    string `json:"name"`
	Lazy    bool   `json:"lazy"`
	Tools   int    `json:"tools"`
	Direct  int    `json:"direct"`
	Through int    `json:"dynmcp"`
}

func countTokens(texts ...string) (sum int) {
	for _, text := range texts {
		sum += tokens.Count(text)
	}
	return sum
}

// CountDefinitions counts the texts at the start of a session: those of the servers in v, and
// dynmcp's tools and instructions, which are its answers to tools/list and initialize.
func CountDefinitions(v *catalog.View, tools json.RawMessage, instructions string) *Counts {
	c := &Counts{Tokenizer: "o200k, estimated"}
	var list struct{ Tools []json.RawMessage }
	_ = json.Unmarshal(tools, &list) // our own answer is valid
	c.Through = countTokens(instructions)
	descriptions := ""
	for _, t := range list.Tools {
		definition, description := readByModels(t)
		c.Through += countTokens(definition)
		descriptions += description + "\n"
	}
	for _, info := range v.Servers() {
		if !info.Loaded && !info.Stored {
			continue
		}
		s := serverTokens{Name: info.Name, Lazy: info.Lazy, Direct: countTokens(info.Instructions), Through: countTokens(catalog.LinesOf(descriptions, info.Name)...)}
		for _, t := range v.ServerTools(info.Name) {
			definition, _ := readByModels(t.Raw)
			s.Direct += countTokens(definition)
			s.Tools++
		}
		c.Servers = append(c.Servers, s)
		c.Direct += s.Direct
	}
	return c
}

// readByModels returns the part of a definition that hosts pass to the model, as JSON: name,
// description and input schema.
func readByModels(definition json.RawMessage) (text, description string) {
	var t struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(definition, &t) // the catalogue holds only valid definitions
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(t) != nil {
		return string(definition), t.Description
	}
	return strings.TrimSpace(b.String()), t.Description
}

// Saved returns a sentence about the tokens that dynmcp saves at the start of a session, or "" if no
// server was counted.
func (c *Counts) Saved() string {
	switch saved := c.Direct - c.Through; {
	case len(c.Servers) == 0:
		return ""
	case saved > 0:
		return fmt.Sprintf("dynmcp saves %s of %s tokens at the start of each session (%.1f%%).",
			Grouped(saved), Grouped(c.Direct), 100*float64(saved)/float64(c.Direct))
	default:
		return fmt.Sprintf("With so few tools dynmcp saves no tokens: it adds %s at the start of each session.", Grouped(-saved))
	}
}

// Grouped formats a number with commas between thousands.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
