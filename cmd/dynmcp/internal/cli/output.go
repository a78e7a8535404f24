package cli

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/redact"
)

// Secrets redacts the secrets of the config from all displayed text. Loading a config adds them.
var Secrets redact.Redactor

// Stdout returns the output for the results of a command.
func Stdout(cmd *cobra.Command) *terminal.Writer { return terminal.New(cmd.OutOrStdout()) }

// Stderr returns the output for everything else.
func Stderr(cmd *cobra.Command) *terminal.Writer { return terminal.New(cmd.ErrOrStderr()) }

// Terminal returns stdin if it is a terminal, and nil otherwise.
func Terminal(cmd *cobra.Command) *os.File {
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return in
	}
	return nil
}

// Confirmed asks a question on a terminal. Without a terminal the answer is no.
func Confirmed(cmd *cobra.Command, question string) bool {
	in := Terminal(cmd)
	if in == nil || !Stderr(cmd).Interactive {
		return false
	}
	Stderr(cmd).Printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// A MessageError is an error whose exact wording users rely on, including capital letters.
type MessageError string

func (e MessageError) Error() string { return string(e) }
