// Package sharing lets the hosts of one user share a run of dynmcp. A [Client] serves each host on stdin and
// stdout, as a wrap of the run.
//
// A client finds the socket by a name that is derived from the config and the environment
// (name.go) and starts the run if needed (start.go). If the run ends before the host does, the
// client connects to another.
package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/schema"
)

// Time limits for connecting.
const (
	maxConnect   = 60 * time.Second      // for starting a run and being accepted by it
	maxReturn    = 5 * time.Second       // for waiting until somebody else restarts the run of a named socket
	connectPause = 10 * time.Millisecond // between two attempts while another client starts the run
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

// Run serves a host until the host or ctx ends, or no run can be reached. It is a wrap of the run
// as its only server: what the run is asked again after its end, and which calls may have run,
// follows the rules for a server that another process runs.
func (c *Client) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	path, err := c.path(ctx)
	if err != nil {
		return err
	}
	first, err := c.connect(ctx, path, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	agg, err := aggregator.New(wrapConfig(), aggregator.Options{
		Version: c.Version, Logger: c.Log,
		Cluster: &sharedRun{client: c, path: path, first: first},
	})
	if err != nil {
		return err
	}
	defer agg.Close()
	return agg.Serve(ctx, in, out)
}

// A sharedRun is where the only server of a wrap runs. It implements aggregator.Cluster.
type sharedRun struct {
	client *Client
	path   string
	first  net.Conn // used by the first load
}

// Place returns a connection to the run.
func (s *sharedRun) Place(ctx context.Context, _ schema.Server, _ string) (*aggregator.Placement, error) {
	if stream := s.first; stream != nil {
		s.first = nil
		return &aggregator.Placement{Stream: stream}, nil
	}
	var wait time.Duration
	if s.client.Socket != "" {
		wait = maxReturn
	}
	stream, err := s.client.connect(ctx, s.path, wait)
	return &aggregator.Placement{Stream: stream}, err
}

// ResultOf finds nothing: the run answers for what it keeps.
func (s *sharedRun) ResultOf(context.Context, string, string, string) (json.RawMessage, int, bool) {
	return nil, 0, false
}

// wrapConfig returns the config of a wrap that leaves everything to the run.
func wrapConfig() *schema.Config {
	cfg := schema.Single("dynmcp", nil)
	cfg.Expose = []string{schema.ExposeDirect}
	cfg.Catalog.Stable, cfg.Catalog.OnChange = schema.StableOff, schema.OnChangeIgnore
	cfg.Servers[0].LoadTimeout, cfg.Servers[0].MaxMessageBytes = maxConnect, maxFromRun
	return cfg
}

// path returns the path of the socket of the run.
func (c *Client) path(ctx context.Context) (path string, err error) {
	if path = c.Socket; path == "" {
		if path, err = c.sharedSocket(ctx); err != nil {
			return "", err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, localhttp.CheckPath(path)
}

// connect returns a connection to the run on a socket. If there is no run, it waits for another
// client to start one for the duration wait, and then starts one itself.
func (c *Client) connect(ctx context.Context, path string, wait time.Duration) (net.Conn, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	for {
		conn, version, err := localhttp.Connect(ctx, path)
		if err == nil {
			if version != c.Version {
				c.Log.Info("the run that hosts share is of another version; it ends when no host is connected", "its", version, "ours", c.Version)
			}
			return conn, nil
		}
		if !errors.Is(err, localhttp.ErrAbsent) {
			return nil, err
		}
		if time.Since(began) >= wait {
			switch err := c.startShared(ctx, path); {
			case err == nil:
				continue
			case !errors.Is(err, localhttp.ErrLocked):
				return nil, err
			}
		}
		select { // another client starts the run, or the run is ending
		case <-time.After(connectPause):
		case <-ctx.Done():
			return nil, hint.With(fmt.Errorf("%s is held by a dynmcp that admits nobody", path), "see %s.log; fuser %s.lock names its process", path, path)
		}
	}
}

// maxFromRun limits the length of a run's messages. The run's own limits are lower.
const maxFromRun = 1 << 30
