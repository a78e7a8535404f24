package main

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// helpWidth is the maximum width of help. On a wider terminal the flags are wider.
const helpWidth = 80

// addHelpFuncs adds functions to the templates of all commands of the process, once: each takes the width.
var addHelpFuncs = sync.OnceFunc(func() {
	type flagSet interface{ FlagUsagesWrapped(columns int) string }
	cobra.AddTemplateFunc("flagUsages", func(width int, flags flagSet) string { return flags.FlagUsagesWrapped(width) })
	cobra.AddTemplateFunc("reflow", reflow)
})

// wrapHelp wraps the help of all commands at the width of the terminal, or at helpWidth.
func wrapHelp(root *cobra.Command) {
	addHelpFuncs()
	width := cmp.Or(cli.Stdout(root).Width, helpWidth) // cobra sets another output while it writes the flags
	usages := fmt.Sprintf("flagUsages %d ", width)
	usage := strings.NewReplacer(
		".LocalFlags.FlagUsages", usages+".LocalFlags",
		".InheritedFlags.FlagUsages", usages+".InheritedFlags",
	).Replace(root.UsageTemplate())
	root.SetUsageTemplate(usage)
	filled := fmt.Sprintf("(or .Long .Short | reflow %d)", min(width, helpWidth))
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "(or .Long .Short)", filled, 1))
}

// reflow fills the paragraphs of a text. Lines that begin with white space, and empty
// ones, stay as they are.
func reflow(width int, text string) string {
	var lines []string
	joins := false // the last line is one of a paragraph
	for line := range strings.SplitSeq(text, "\n") {
		plain := line != "" && line[0] != ' ' && line[0] != '\t'
		if plain && joins {
			lines[len(lines)-1] += " " + line
		} else {
			lines = append(lines, line)
		}
		joins = plain
	}
	for i, line := range lines {
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			lines[i] = terminal.Wrap(line, width)
		}
	}
	return strings.Join(lines, "\n")
}
