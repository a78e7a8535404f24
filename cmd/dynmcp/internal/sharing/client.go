package sharing

import (
	"context"
	"log/slog"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// A Client serves one host from a run that others share.
type Client struct {
	Socket string        // "" is the one of the config and the environment
	Idle   time.Duration // of a run that it starts
	Level  string        // of the log of such a run

	Profile string                                            // "" is left to the config
	EnvFile string                                            // "" if unset
	Files   func() ([]string, error)                          // the config files that are read
	Load    func(ctx context.Context) (*schema.Config, error) // reads them

	Version string // of this program
	Log     *slog.Logger
}
