package selfhost

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
)

// completionWait is the timeout for starting a server to complete the names of its tools.
const completionWait = 10 * time.Second

// nothing keeps shells from offering file names.
const nothing = cobra.ShellCompDirectiveNoFileComp

// CompleteTools completes the names of servers and, after a slash, of the tools of that server. It
// starts the server unless its listing is stored.
func CompleteTools(on *Target) cobra.CompletionFunc {
	servers := conf.CompleteServers(&on.Flags, "/")
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		name, _, ok := strings.Cut(word, "/")
		if !ok || len(args) > 0 {
			return servers(cmd, args, word)
		}
		from := on.Flags
		from.AsWritten = false // the server may be started here even if the verb starts nothing
		cfg, err := from.Load(cmd.Context())
		if err != nil {
			return nil, nothing
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		h, err := Start(ctx, OnlyServers(cfg, name), nil)
		if err != nil {
			return nil, nothing
		}
		defer h.Close()
		if info, _ := h.View().Server(name); !info.Stored && h.LoadOne(ctx, name) != nil {
			return nil, nothing
		}
		var words []string
		for _, tool := range h.View().ServerTools(name) {
			words = append(words, cobra.CompletionWithDesc(tool.Name, tool.Summary))
		}
		return words, nothing
	}
}
