// Package secret has the verb secret, and keeps secrets in the keyring of the system.
package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

// Verb keeps secrets in the keyring.
var Verb = cli.Verb{
	Use:   "secret",
	Group: cli.Guard,
	Short: "Manage secrets in the system's keyring",
	Long: `Manage secrets in the system's keyring. ${keyring:NAME} in a config is the
value of the secret NAME.`,
	Example: `  dynmcp secret set GITHUB_TOKEN
  dynmcp add git --env 'TOKEN=${keyring:GITHUB_TOKEN}' -- git-mcp`,
	Verbs: []cli.Verb{setVerb, rmVerb, lsVerb, moveVerb},
}

var setVerb = cli.Verb{
	Use:   "set NAME",
	Short: "Keep a secret, or replace it",
	Long: `Keep a secret, or replace it. The value is asked for on a terminal, and not shown.
Elsewhere it is read from stdin, without the newline at its end.`,
	Example: `  dynmcp secret set GITHUB_TOKEN
  gh auth token | dynmcp secret set GITHUB_TOKEN`,
	Args:     oneSecret,
	Complete: completeSecrets,
	New: func(*cobra.Command) cli.Run {
		return func(cmd *cobra.Command, args []string) error {
			if err := keyring.Offered(); err != nil { // before the secret is typed
				return keyringError(err)
			}
			value, err := askSecret(cmd, args[0])
			if err != nil {
				return err
			}
			return setSecret(args[0], value)
		}
	},
}

var rmVerb = cli.Verb{
	Use:      "rm NAME",
	Short:    "Remove a secret",
	Long:     `Remove a secret from the keyring.`,
	Example:  "  dynmcp secret rm GITHUB_TOKEN",
	Args:     oneSecret,
	Complete: completeSecrets,
	New: func(*cobra.Command) cli.Run {
		return func(_ *cobra.Command, args []string) error { return removeSecret(args[0]) }
	},
}

var lsVerb = cli.Verb{
	Use:   "ls",
	Short: "List the names of the secrets",
	Long: `List the names of the secrets that dynmcp has put into the keyring. No value is
shown, and the keyring is not asked.`,
	Example:  "  dynmcp secret ls",
	Complete: cobra.NoFileCompletions,
	New: func(*cobra.Command) cli.Run {
		return func(cmd *cobra.Command, _ []string) error {
			names, err := secretNames()
			out := cli.Stdout(cmd)
			for _, name := range names {
				out.Printf("%s\n", name)
			}
			return errors.Join(err, out.Err)
		}
	},
}

func oneSecret(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return hint.With(errors.New("no name given"), "%s NAME; dynmcp secret ls lists the secrets", cmd.CommandPath())
	case len(args) > 1:
		return cli.UnexpectedArgument(cmd, args[1])
	case !secretref.Name().MatchString(args[0]):
		return hint.With(errors.New("this is not a name for a secret"), "use letters, digits and _ . / @ -")
	}
	return nil
}

func completeSecrets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := secretNames() // empty after an error
	return names, cobra.ShellCompDirectiveNoFileComp
}

// maxSecretBytes is more than any keyring stores.
const maxSecretBytes = 64 << 10

// askSecret reads a secret from the terminal without echo, or from stdin.
func askSecret(cmd *cobra.Command, name string) (string, error) {
	var text []byte
	var err error
	if in := cli.Terminal(cmd); in != nil {
		text, err = ReadUnseen(cmd.Context(), int(in.Fd()), cli.Stderr(cmd), "The secret "+name+": ")
	} else {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxSecretBytes+1))
	}
	value := secretref.TrimNewline(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	case value == "":
		return "", errors.New("the secret is empty")
	case len(text) > maxSecretBytes:
		return "", errors.New("the secret is larger than 64 KiB")
	}
	cli.Secrets.Add(value)
	return value, nil
}

// ReadUnseen prompts for a line on a terminal and reads it without echo. The echo is off before
// the prompt is printed. An interrupt restores the echo and ends the process.
func ReadUnseen(ctx context.Context, fd int, out *terminal.Writer, prompt string) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		_ = term.Restore(fd, before)
		os.Exit(130)
	})()
	if err := echoOff(fd); err != nil {
		return nil, err
	}
	defer term.Restore(fd, before)
	out.Printf("%s", prompt)
	defer out.Printf("\n")
	return term.ReadPassword(fd)
}

// setSecret stores a secret in the keyring. It lists the name first: after a failure in between, the user
// sees a name without a secret instead of missing a secret without a name.
func setSecret(name, value string) error {
	err := editNames(func(names []string) []string { return append(names, name) })
	if err != nil {
		return err
	}
	if err = keyring.Set(secretref.Service, name, value); err != nil {
		return keyringError(err)
	}
	return nil
}

func removeSecret(name string) error {
	err := keyring.Delete(secretref.Service, name)
	missing := errors.Is(err, keyring.ErrNotFound)
	if err != nil && !missing {
		return keyringError(err)
	}
	listed := false
	err = editNames(func(names []string) []string {
		listed = slices.Contains(names, name)
		return slices.DeleteFunc(names, func(n string) bool { return n == name })
	})
	if err == nil && missing && !listed {
		return hint.With(fmt.Errorf("there is no secret %s", name), "dynmcp secret ls lists them")
	}
	return err
}

func keyringError(err error) error {
	return hint.With(fmt.Errorf("the keyring cannot be used (%w)", err), "%s", secretref.NoKeyring)
}

// openNames opens the file that lists the names of secrets. Keyrings cannot list them.
func openNames() (*editfile.File, error) {
	dir, err := conf.StateDir()
	if err != nil {
		return nil, err
	}
	return editfile.Open(filepath.Join(dir, "secrets.txt"))
}

func secretNames() ([]string, error) {
	file, err := openNames()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(file.Old)), func(name string) bool { return !secretref.Name().MatchString(name) }), nil
}

// editNames changes the list of names, which is readable only by its owner.
func editNames(edit func([]string) []string) error {
	file, err := openNames()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
		return err
	}
	unlock, err := file.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	names := edit(strings.Fields(string(file.Old)))
	slices.Sort(names)
	text := ""
	for _, name := range slices.Compact(names) {
		text += name + "\n"
	}
	return atomicfile.Replace(file.Path, []byte(text), 0o600)
}

// kept returns the secrets of dynmcp in the keyring, by name.
func kept() (map[string]string, error) {
	if err := keyring.Offered(); err != nil {
		return nil, keyringError(err)
	}
	names, err := secretNames()
	values := map[string]string{}
	for _, name := range names {
		value, err := keyring.Get(secretref.Service, name)
		if errors.Is(err, keyring.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, keyringError(err)
		}
		cli.Secrets.Add(value)
		values[name] = value
	}
	return values, err
}
