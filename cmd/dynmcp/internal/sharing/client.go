package sharing

import (
	"context"
	"log/slog"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// A Client connects one host to a shared run.
type Client struct {
	Socket string        // "" derives it from the config and the environment
	Idle   time.Duration // idle time of a run that it starts
	Level  string        // log level of such a run

	Profile string                                            // "" is left to the config
	EnvFile string                                            // "" if unset
	Files   func() ([]string, error)                          // the config files that are read
	Load    func(ctx context.Context) (*schema.Config, error) // loads them

	Version string // of this program
	Log     *slog.Logger
}
