// Command dynmcp stands between an MCP host and many upstream MCP servers.
//
// main.go holds what every verb shares: the tree of commands, exit codes, how
// errors are shown. Each verb has a file of its own; stdio.go is what runs
// without a verb.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/process"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/transports"
)

// version is dynmcp's own, and stands nowhere else: the tag of a release must be
// "v" and this, and everything that is packaged takes it from here.
const version = "0.2.0"

// secrets hides what the config took from variables, headers and tokens. It is
// filled when a config is loaded, and used wherever text is shown.
var secrets redact.Redactor

// references finds the secrets that a config refers to. It keeps them for the run.
var references = secretref.Resolver{Hide: &secrets}

// manCommand is there in builds with the tag man.
var manCommand func(root *cobra.Command) *cobra.Command

func main() {
	process.EndWithLaunchers()
	process.TuneMemory()
	process.NoCore()
	err := rootCommand().Execute()
	var stopped *interruption
	switch {
	case errors.As(err, &stopped): // which was said at once
		os.Exit(stopped.status())
	case err != nil:
		report(terminal.New(os.Stderr), err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	cmd := stdioCommand()
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	cmd.Version = version
	cmd.SetVersionTemplate("dynmcp {{.Version}}\n")
	cmd.AddCommand(lsCommand(), testCommand(), warmCommand(), callCommand(), findCommand(), describeCommand(), readCommand(), promptCommand(), sandboxCommand(), doctorCommand(), tokensCommand(), versionCommand())
	cmd.AddCommand(initCommand(), addCommand(), removeCommand(), schemaCommand(), importCommand(), installCommand(), loginCommand(), logoutCommand(), secretCommand())
	cmd.AddCommand(serveCommand(), connectCommand(), clusterCommand())
	if manCommand != nil {
		cmd.AddCommand(manCommand(cmd))
	}
	cmd.SetFlagErrorFunc(func(verb *cobra.Command, err error) error {
		return hinted(err, "%s --help lists the flags", verb.CommandPath())
	})
	refuseOtherShells(cmd)
	wrapHelp(cmd)
	if len(os.Args) > 1 && os.Args[1] == cobra.ShellCompRequestCmd {
		plainFlagTexts(cmd)
	}
	return cmd
}

// hinted returns err with what the user can do about it.
func hinted(err error, format string, args ...any) error { return hint.With(err, format, args...) }

func stdout(cmd *cobra.Command) *terminal.Writer { return terminal.New(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *terminal.Writer { return terminal.New(cmd.ErrOrStderr()) }

// confirmed asks on a terminal. Without one the answer is no.
func confirmed(cmd *cobra.Command, question string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !stderr(cmd).Interactive {
		return false
	}
	stderr(cmd).Printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// A messageError is an error whose exact wording users rely on, capital letter
// and all.
type messageError string

func (e messageError) Error() string { return string(e) }

// report shows an error to a person: what is wrong, the last lines of a child
// that failed, and what to do.
func report(out *terminal.Writer, err error) {
	out.Labelled(terminal.Red, "dynmcp: ", secrets.String(err.Error()))
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		if failure.Stderr != "" {
			out.Printf("last lines of its stderr:\n%s\n", secrets.String(terminal.Indent(failure.Stderr, "  ")))
		}
		if failure.Hint != "" {
			out.Labelled(terminal.Yellow, "hint: ", secrets.String(failure.Hint))
		}
	}
	if with, ok := errors.AsType[*hint.Error](err); ok {
		out.Labelled(terminal.Yellow, "hint: ", secrets.String(with.Hint))
	}
}

// recoverInto, deferred at the root of a goroutine, makes its panic an error.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("internal error: %v\n%s", p, debug.Stack())
	}
}

func addLogLevel(cmd *cobra.Command, level *string, what string) {
	cmd.Flags().StringVar(level, "log-level", "info", what+": debug, info, warn or error")
	completeValues(cmd, map[string][]string{"log-level": {"debug", "info", "warn", "error"}})
}

// logger returns the logger for stderr; stdout belongs to the protocol.
func logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	switch strings.ToLower(level) { // Python's names
	case "warning":
		level = "warn"
	case "critical":
		level = "error"
	}
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, hinted(fmt.Errorf("unknown log level %q", level), "use debug, info, warn or error")
	}
	return slog.New(slog.NewTextHandler(secrets.Writer(w), &slog.HandlerOptions{Level: l})), nil
}
