package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/schema"
)

// verb has the subcommand test.
var verb = cli.Verb{
	Use:   "webhook",
	Group: cli.Develop,
	Short: "Try the webhooks of the config",
	Long: `Webhooks are addresses of the config that are told of calls that failed, were
denied or slow, and of tools that changed. See docs/webhooks.md.`,
	Verbs: []cli.Verb{{
		Use:     "test [flags]",
		Short:   "Send a test event to each webhook",
		Long:    `Send a test event to each webhook of the config, once, and say how it was answered.`,
		Example: `  dynmcp webhook test -c mcp.json`,
		New: func(cmd *cobra.Command) cli.Run {
			var from conf.Flags
			from.Add(cmd)
			return func(cmd *cobra.Command, _ []string) error {
				return cli.Interruptibly(cmd, func(ctx context.Context) error { return test(ctx, cmd, &from) })
			}
		},
	}},
}

// test sends a message to each webhook of a config.
func test(ctx context.Context, cmd *cobra.Command, from *conf.Flags) error {
	cfg, err := from.Load(ctx)
	if err != nil {
		return err
	}
	hooks := schema.Keys[Keys](cfg).Webhooks
	if len(hooks) == 0 {
		return hint.With(errors.New("the config has no webhooks"), `add "webhooks": [{"url": "https://…"}]`)
	}
	out, bad := cli.Stdout(cmd), false
	for _, hook := range hooks {
		s := newSender(hook, nil, slog.New(slog.DiscardHandler))
		began := time.Now()
		status, err := s.post(ctx, newID(), message{Type: "test", Time: began, Data: map[string]string{"text": "dynmcp webhook test"}})
		s.end()
		switch err = errors.Join(err, failed(status)); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			bad = true
			out.Printf("%s: %s\n", hook.name(), cli.Secrets.String(err.Error()))
		default:
			out.Printf("%s: %d %s in %s\n", hook.name(), status, http.StatusText(status), time.Since(began).Round(time.Millisecond))
		}
	}
	if bad {
		return errors.Join(out.Err, errors.New("not all webhooks were delivered"))
	}
	return out.Err
}
