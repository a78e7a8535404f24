package conf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema"
)

// LoadOrWrap loads the config that from selects or, if wrap is set, makes one for the command in
// args. expose, unless nil, replaces the surfaces of the config.
func LoadOrWrap(ctx context.Context, from *Flags, wrap bool, args, expose []string) (*schema.Config, error) {
	if err := checkSurfaces(expose); err != nil {
		return nil, err
	}
	switch {
	case !wrap:
		from.expose = expose
		return from.Load(ctx)
	case len(args) == 0:
		return nil, hint.With(errors.New("no upstream command was provided after --"),
			"dynmcp -- npx -y @modelcontextprotocol/server-everything stdio")
	case from.Config != "":
		return nil, hint.With(errors.New("a config file and a command after -- exclude each other"), "leave out one of them")
	}
	if from.Profile != "" {
		return nil, hint.With(errors.New("a profile and a command after -- exclude each other"), "leave out one of them")
	}
	cfg := schema.Single(args[0], args[1:])
	if expose != nil {
		cfg.Expose = expose
		if cfg.ExposesScripts() {
			cfg.Catalog.Definitions = schema.DefinitionsTypes
		}
	}
	return cfg, nil
}

func checkSurfaces(expose []string) error {
	for _, surface := range expose {
		if !slices.Contains(schema.Surfaces, surface) {
			err := fmt.Errorf("--expose: unknown surface %q", surface)
			if near := nearest.Word(surface, schema.Surfaces); near != "" {
				return hint.With(err, "did you mean %s?", near)
			}
			return hint.With(err, "there are %s", strings.Join(schema.Surfaces, ", "))
		}
	}
	if err := schema.CheckExpose(expose); err != nil {
		return hint.With(fmt.Errorf("--expose: %w", err), "leave out one of them")
	}
	return nil
}
