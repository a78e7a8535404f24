package costs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/activity"
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

	Answers []answerTokens `json:"answers,omitempty"`

	Session *activity.Session `json:"last_session,omitempty"` // from the record of calls
}

// A serverTokens holds the counts of one server.
type serverTokens struct {
	Name    string `json:"name"`
	Lazy    bool   `json:"lazy"`
	Tools   int    `json:"tools"`
	Direct  int    `json:"direct"`
	Through int    `json:"dynmcp"`
}

// An answerTokens holds the counts of one kind of answer.
type answerTokens struct {
	Call   string `json:"call"`
	Calls  int    `json:"calls"` // number of counted calls
	Median int    `json:"median"`
	Most   int    `json:"most"`
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

// countAnswers counts the answers of discover_tool and load_mcp: for every tool, every server, and
// searches for the descriptions of some tools.
func (c *Counts) countAnswers(v *catalog.View) {
	const searches = 200 // about as many searches are enough for a median
	var query, tool, list, load []int
	tools := v.Tools()
	step := max(len(tools)/searches, 1)
	for i, t := range tools {
		tool = append(tool, countTokens(v.Texts().Brief(t)))
		if i%step == 0 && t.Summary != "" {
			query = append(query, countTokens(v.Texts().Found(catalog.Search{Queries: []string{t.Summary}})))
		}
	}
	for _, s := range c.Servers {
		page, _ := v.Texts().Page(s.Name, 0, 0, false)
		list = append(list, countTokens(page))
		if s.Lazy {
			load = append(load, countTokens(v.Texts().Loaded(s.Name)))
		}
	}
	for _, a := range []struct {
		call   string
		counts []int
	}{{`discover_tool {"query"}`, query}, {`discover_tool {"tool_name"}`, tool}, {`discover_tool {"server"}`, list}, {`load_mcp`, load}} {
		if n := len(a.counts); n > 0 {
			slices.Sort(a.counts)
			c.Answers = append(c.Answers, answerTokens{Call: a.call, Calls: n, Median: a.counts[n/2], Most: a.counts[n-1]})
		}
	}
}

// Saved returns a sentence about the tokens that dynmcp saves at the start of a session, or "" if no
// server was counted.
func (c *Counts) Saved() string {
	switch saved := c.Direct - c.Through; {
	case len(c.Servers) == 0:
		return ""
	case saved > 0:
		return fmt.Sprintf("dynmcp saves %s of %s tokens at the start of each session (%.1f%%).",
			grouped(saved), grouped(c.Direct), 100*float64(saved)/float64(c.Direct))
	default:
		return fmt.Sprintf("With so few tools dynmcp saves no tokens: it adds %s at the start of each session.", grouped(-saved))
	}
}

// grouped formats a number with commas between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
