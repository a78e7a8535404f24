package lock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/transports"
)

// maxUnapproved is how many unapproved tools get a warning of their own.
const maxUnapproved = 5

// Judge implements approval.Guard.
func (g *Guard) Judge(tools []definition.Tool, shown func(i int) bool) approval.Judgement {
	j := approval.Judgement{Unapproved: map[string]approval.Verdict{}}
	kinds := map[string]Kind{}
	for i, v := range g.Compare(tools) {
		if name := tools[i].Name; v.Kind != Approved && shown(i) {
			j.Unapproved[name] = approval.Verdict{Now: v.Now, Why: v.String(), Remedy: g.remedy(v, name)}
			kinds[name] = v.Kind
		}
	}
	if len(kinds) == 0 {
		return j
	}
	n := display.Plural(len(kinds), "tool")
	if g.blocks {
		j.Note = fmt.Sprintf(" (%s not approved; a person can: dynmcp approve %s)", n, display.Escape(g.server))
	}
	if g.broken != nil {
		j.Warnings = append(j.Warnings, fmt.Sprintf("%s held back: %v", n, g.broken))
		return j
	}
	rest := 0
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		if i < maxUnapproved && kinds[name] != Unpinned {
			j.Warnings = append(j.Warnings, fmt.Sprintf("tool %s %s (dynmcp diff %s)", display.Name(name), j.Unapproved[name].Why, g.server))
		} else {
			rest++
		}
	}
	if rest > 0 {
		j.Warnings = append(j.Warnings, fmt.Sprintf("%s not approved (dynmcp diff %s)", display.Plural(rest, "tool"), g.server))
	}
	return j
}

// remedy returns what to do about a tool that is hidden until it is approved, or called with a note.
func (g *Guard) remedy(v Verdict, tool string) string {
	switch word := g.word(tool); {
	case v.Kind == Unread:
		return "A person has to mend the lock"
	case g.blocks:
		return fmt.Sprintf("A person sees what is in it with `dynmcp diff %s`, and approves it with `dynmcp approve %[1]s`", word)
	default:
		return fmt.Sprintf("Tell your user: `dynmcp diff %s` shows it, `dynmcp approve %[1]s` accepts it", word)
	}
}

// word returns a tool of the server as a word of a displayed command, quoted if necessary.
func (g *Guard) word(tool string) string {
	name := g.server + "/" + tool
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_-./") == "" {
		return name
	}
	return display.Name(name)
}

// NotApproved implements approval.Guard.
func (g *Guard) NotApproved(tool, page string) error {
	word := g.word(tool)
	f := &transports.Failure{
		Upstream: g.server, Code: transports.CodeNotApproved, Outcome: transports.NotSent,
		Cause: errors.New(word + " is not listed as it was approved"),
		Hint:  fmt.Sprintf("a person sees what has changed with `dynmcp diff %s`, and approves it with `dynmcp approve %[1]s`", word),
	}
	if page != "" {
		f.Outcome, f.Cause = transports.Executed, fmt.Errorf("%q, the page of %s, is not as it was approved", page, word)
		f.Hint = fmt.Sprintf("a person sees it with `dynmcp diff %s --start`, and approves it with `dynmcp approve %[1]s`; "+
			"if it is another one at each start, \"pins\" has to be \"warn\"", word)
	}
	return f
}
