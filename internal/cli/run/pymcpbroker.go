package run

import (
	"errors"
	"net"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
)

// PyMCPBrokerArguments returns an error with the equivalent command if args have pyMCPBroker's form,
// ADDRESS CONFIG [SECRET], and nil otherwise. The error does not contain the secret.
func PyMCPBrokerArguments(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return nil
	}
	host, port, err := net.SplitHostPort(args[0])
	if err != nil || port == "" {
		return nil
	}
	words := []string{"dynmcp", "serve", "--http", args[0]}
	ip := net.ParseIP(host)
	switch local := host == "localhost" || ip != nil && ip.IsLoopback(); {
	case cmd.Flags().Changed("dump-tree"):
		words = []string{"dynmcp", "--dump-tree"}
	case !local:
		words = append(words, "--listen-public", "--token", "SECRET")
	case len(args) == 3:
		words = append(words, "--token", "SECRET")
	}
	if cmd.Flags().Changed("ignore-broken-tool") {
		words = append(words, "--ignore-broken-tool")
	}
	words = append(words, "-c", args[1])
	return hint.With(errors.New("the address and the config are given by flags"), "write\n  %s", shellescape.QuoteCommand(words))
}
