package secrets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

var moveVerb = cli.Verb{
	Use:   "move [flags] [server]",
	Short: "Move secrets out of a config",
	Long: `Move what may be a secret in the entry of a server, or in all entries, out of the config:
into the keyring, or without one into the .env beside it. A reference takes its
place, and all else of the file stays as it is. The changes are shown and confirmed first;
--yes skips the prompt. No copy of the old file is kept; earlier copies that have
secrets, such as the .bak of another change, are named.`,
	Example: `  dynmcp secret move github
  dynmcp secret move --secrets env --yes`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		var choice conf.Choice
		choice.Add(cmd, "move them out of")
		place := cmd.Flags().String("secrets", "", "where they go: keyring, or env for the .env beside the config")
		yes := cmd.Flags().BoolP("yes", "y", false, "write without asking")
		cli.CompleteValues(cmd, map[string][]string{"secrets": {secret.InKeyring, secret.InEnv}})
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			path, _ := choice.File() // without one there is nothing to complete
			return conf.CompleteServers(&conf.Flags{Config: path}, "")(cmd, args, word)
		}
		return func(cmd *cobra.Command, args []string) error {
			if err := secret.CheckPlace(cmd.Context(), *place); err != nil {
				return err
			}
			path, err := choice.File()
			if err != nil {
				return err
			}
			choice.Say(cli.Stderr(cmd), path)
			inKeyring := *place == secret.InKeyring || *place == "" && keyring.Offered() == nil
			return moveSecrets(cmd, path, inKeyring, *yes, strings.Join(args, ""))
		}
	},
}

// moveSecrets moves the secrets of a server, or of all servers if server is "".
func moveSecrets(cmd *cobra.Command, config string, inKeyring, yes bool, server string) error {
	file, unlock, err := editfile.LockConfig(config)
	if err != nil {
		return err
	}
	defer unlock()
	to, err := secret.Open(file, inKeyring)
	if err == nil {
		err = to.Writable(file)
	}
	if err != nil {
		return err
	}
	text, err := moved(file, to, server)
	if err != nil {
		return err
	}
	out := cli.Stdout(cmd)
	if bytes.Equal(text, file.Old) {
		out.Printf("No secret is in plain text in %s\n", file.Name())
		nameCopies(cmd, file.Path)
		return out.Err
	}
	editfile.ShowDiff(out, file.Path, file.Old, text, mask.File)
	if !yes && !cli.Confirmed(cmd, "Move "+to.Names()+" out of "+file.Name()+"?") {
		out.Printf("Nothing was written; --yes writes it.\n")
		return out.Err
	}
	if err := to.Write(); err != nil { // before the config that refers to them
		return err
	}
	if err := atomicfile.Replace(file.Path, text, file.Mode); err != nil {
		return err
	}
	to.Report(cli.Stderr(cmd))
	nameCopies(cmd, file.Path)
	return out.Err
}

// nameCopies warns of copies of a config that still have secrets.
func nameCopies(cmd *cobra.Command, path string) {
	for _, at := range secret.InCopies(cmd.Context(), path) {
		cli.Stderr(cmd).Labelled(terminal.Yellow, "warning: ", at+" still has secrets in plain text: remove it")
	}
}

// moved returns the text of a config with secrets replaced by references.
func moved(file *editfile.File, to *secret.Destination, server string) ([]byte, error) {
	root, err := (&syntax.Source{Name: file.Path, Data: file.Old}).Parse()
	if err != nil {
		return nil, err
	}
	texts := map[*syntax.Node]string{}
	found := server == ""
	for _, list := range schema.ServerLists {
		for _, entry := range root.MembersOf(list) {
			if server == "" || entry.Key == server {
				found = true
				moveOut(entry, to, texts)
			}
		}
	}
	if !found {
		return nil, hint.With(fmt.Errorf("%s has no server %q", file.Name(), server), "dynmcp ls lists them")
	}
	return syntax.SetTexts(file.Path, file.Old, root, texts)
}

// moveOut adds the changed texts of an entry to texts, with secrets replaced by references.
func moveOut(entry syntax.Member, to *secret.Destination, texts map[*syntax.Node]string) {
	secret.WalkTexts(entry, func(within, key string, n *syntax.Node, all []secrets.Secret) {
		if len(all) == 0 {
			return
		}
		if within == "env" { // the whole value is the secret
			all = []secrets.Secret{{To: len(n.Scalar), Name: key}}
		}
		text := n.Scalar
		for _, found := range slices.Backward(all) {
			text = text[:found.From] + to.Put(entry.Key, found.Name, n.Scalar[found.From:found.To]) + text[found.To:]
		}
		texts[n] = text
	})
}
