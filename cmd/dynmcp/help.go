package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// wrapHelp has the help of all commands wrapped at the width of the terminal.
func wrapHelp(root *cobra.Command) {
	out := stdout(root) // cobra has its own while it writes the flags
	type flagSet interface{ FlagUsagesWrapped(columns int) string }
	cobra.AddTemplateFunc("flagUsages", func(flags flagSet) string { return flags.FlagUsagesWrapped(out.width) })
	cobra.AddTemplateFunc("fold", func(text string) string { return out.fold(text, 0) })
	usage := strings.NewReplacer(
		".LocalFlags.FlagUsages", "flagUsages .LocalFlags",
		".InheritedFlags.FlagUsages", "flagUsages .InheritedFlags",
	).Replace(root.UsageTemplate())
	root.SetUsageTemplate(usage)
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "(or .Long .Short)", "(or .Long .Short | fold)", 1))
}
