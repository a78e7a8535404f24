package run

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/mcptest/drawing"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// The drawing of a reload in the package comment has the frames of a real one.
func TestReloadIsAsDrawn(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "mcp.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(`{"mcpServers": {}}`)
	part := followed{frames: make(chan []string, 1)}
	ctx := module.With(t.Context(), []module.Module{{Name: "drawn", Start: func(module.Run) (module.Part, error) { return part, nil }}})
	from := &conf.Flags{Config: file}
	cfg, err := from.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opts := aggregator.Options{Version: "1", Logger: slog.New(slog.DiscardHandler)}
	err = Serve(ctx, cfg, from, Flags{watch: true}, opts, func(*aggregator.Aggregator, selfhost.Parts) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		write(`{"mcpServers": {"lazy": {"command": "none", "description": "is not started"}}}`)
		select {
		case frames := <-part.frames:
			drawing.Compare(t, "run.go", frames)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// followed is a Part that passes on the stack by which it got another config.
type followed struct {
	event.None
	frames chan []string
}

func (f followed) Follow(*schema.Config) error {
	select {
	case f.frames <- drawing.Stack("reloader.run ", "Parts.Follow "):
	default: // a file may change twice
	}
	return nil
}
