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
	Idle   time.Duration // idle timeout of a run that the client starts
	Level  string        // log level of such a run

	Profile string                                            // "" leaves it to the config
	EnvFile string                                            // "" if unset
	Files   func() ([]string, error)                          // returns the paths of the config files
	Load    func(ctx context.Context) (*schema.Config, error) // loads the config files

	Version string // of this program
	Log     *slog.Logger
}
