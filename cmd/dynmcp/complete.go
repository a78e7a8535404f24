package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
)

// fixCompletion changes the completion command of cobra: an unknown shell is an error, for
// which cobra would print its help, and bash gets the script of writeBashCompletion.
func fixCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		panic(err) // not reached: cobra has just added it
	}
	bash.RunE = func(cmd *cobra.Command, _ []string) error { return writeBashCompletion(cmd, root) }
	completion := bash.Parent()
	completion.GroupID = cli.Develop
	const shells = "bash, zsh, fish, powershell"
	completion.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return hint.With(errors.New("no shell given"), "dynmcp completion bash; it knows %s", shells)
		}
		return hint.With(fmt.Errorf("unknown shell %q", args[0]), "it knows %s", shells)
	}
	completion.RunE = func(*cobra.Command, []string) error { return nil } // so that its arguments are checked
}

// writeBashCompletion writes cobra's script, but replaces the line that calls a function of
// the package bash-completion: macOS and small systems lack it.
func writeBashCompletion(cmd *cobra.Command, root *cobra.Command) error {
	var script bytes.Buffer
	plain, _ := cmd.Flags().GetBool("no-descriptions")
	if err := root.GenBashCompletionV2(&script, !plain); err != nil {
		return err
	}
	const theirs = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"
	_, err := io.WriteString(cmd.OutOrStdout(), strings.Replace(script.String(), theirs, bashWords, 1))
	return err
}

// bashWords sets the words of the command line, and joins those that bash split at = or :.
const bashWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i word split= rest=$COMP_LINE
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $rest != [[:space:]]* && ($word == [=:]* || -n $split) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        split=
        if [[ $word == *[=:] ]]; then split=1; fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
        if ((i == COMP_CWORD)); then cword=$((${#words[@]} - 1)); fi
    done
    cur=${words[cword]}
    prev=
    if ((cword > 0)); then prev=${words[cword-1]}; fi
`

// plainFlagTexts removes the backquotes, which mark the names of values in help, from the
// texts of flags: shells would show them.
func plainFlagTexts(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, c := range cmd.Commands() {
		plainFlagTexts(c)
	}
}
