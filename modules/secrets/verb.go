package secrets

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

// verb keeps secrets in the keyring.
var verb = cli.Verb{
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
				return secret.KeyringError(err)
			}
			value, err := askSecret(cmd, args[0])
			if err != nil {
				return err
			}
			return secret.Set(args[0], value)
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
			names, err := secret.Names()
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
	case !secret.Name().MatchString(args[0]):
		return hint.With(errors.New("this is not a name for a secret"), "use letters, digits and _ . / @ -")
	}
	return nil
}

func completeSecrets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := secret.Names() // empty after an error
	return names, cobra.ShellCompDirectiveNoFileComp
}

// askSecret reads a secret from the terminal without echo, or from stdin.
func askSecret(cmd *cobra.Command, name string) (string, error) {
	var text []byte
	var err error
	if in := cli.Terminal(cmd); in != nil {
		text, err = secret.ReadUnseen(cmd.Context(), int(in.Fd()), cli.Stderr(cmd), "The secret "+name+": ")
	} else {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), secretref.MaxSize+1))
	}
	value := secretref.TrimNewline(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	case value == "":
		return "", errors.New("the secret is empty")
	case len(text) > secretref.MaxSize:
		return "", errors.New("the secret is larger than 64 KiB")
	}
	cli.Secrets.Add(value)
	return value, nil
}

func removeSecret(name string) error {
	err := keyring.Delete(secret.Service, name)
	missing := errors.Is(err, keyring.ErrNotFound)
	if err != nil && !missing {
		return secret.KeyringError(err)
	}
	listed := false
	err = secret.EditNames(func(names []string) []string {
		listed = slices.Contains(names, name)
		return slices.DeleteFunc(names, func(n string) bool { return n == name })
	})
	if err == nil && missing && !listed {
		return hint.With(fmt.Errorf("there is no secret %s", name), "dynmcp secret ls lists them")
	}
	return err
}
