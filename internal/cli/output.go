package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/redact"
)

// Secrets redacts the secrets of the config from all displayed text. Loading a config adds them.
var Secrets redact.Redactor

// Redacted removes secrets from a text. If the end of the text is missing (not whole), it also drops
// an end that may be part of a secret.
func Redacted(text string, whole bool) string {
	if whole {
		return Secrets.String(text)
	}
	safe, _ := Secrets.Split(text)
	return safe
}

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

// Lines returns the lines of in, without the white space around them. Its goroutine ends with in, ctx
// or the process, because a read of a terminal cannot be interrupted.
func Lines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// Asks reports whether a person can be asked: both stdin and stderr are a terminal.
func Asks(cmd *cobra.Command) bool { return Terminal(cmd) != nil && Stderr(cmd).Interactive }

// Confirmed asks a question on a terminal. Without a terminal the answer is no.
func Confirmed(cmd *cobra.Command, question string) bool {
	if !Asks(cmd) {
		return false
	}
	Stderr(cmd).Printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// A MessageError is an error whose exact wording users rely on, including capital letters.
type MessageError string

func (e MessageError) Error() string { return string(e) }
