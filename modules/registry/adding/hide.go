package adding

import (
	"context"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

// hide replaces the secrets in answers by references. Answers that are references already stay.
// to is the destination of the secrets, nil if there are none.
func (a *Adding) hide(ctx context.Context, config *editfile.File, o *api.Option, answers api.Answers) (to *secret.Destination, err error) {
	questions, err := o.Questions()
	if err != nil {
		return nil, err
	}
	for _, q := range questions {
		for i, value := range answers[q.Name] {
			if !q.Secret || strings.Contains(value, "${") {
				continue
			}
			if _, err := q.Check(value); err != nil {
				return nil, fmt.Errorf("%s: %w", q.Name, err)
			}
			cli.Secrets.Add(value)
			if to == nil {
				if to, err = a.destination(ctx, config); err != nil {
					return nil, err
				}
			}
			answers[q.Name][i] = to.Put(a.As, q.Name, value)
		}
	}
	return to, nil
}

func (a *Adding) destination(ctx context.Context, config *editfile.File) (*secret.Destination, error) {
	offered := secret.Offered(ctx)
	if a.Secrets == secret.InKeyring && offered != nil {
		return nil, hint.With(fmt.Errorf("there is no keyring: %w", offered), "--secrets env puts them into the .env beside the config")
	}
	to, err := secret.Open(config, a.Secrets == secret.InKeyring || a.Secrets == "" && offered == nil)
	if err == nil {
		err = to.Writable(config)
	}
	return to, err
}
