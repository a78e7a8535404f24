package selfhost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// withAdvice adds a hint to a failure without one.
func withAdvice(s schema.Server, err error) error {
	var failure *transports.Failure
	switch {
	case !errors.As(err, &failure) || failure.Hint != "":
		return err
	case failure.Code == transports.CodeTimeout:
		return hint.With(err, "if it needs more time, raise load_timeout in its entry")
	case s.Transport == schema.Stdio: // the command without variables, which may be secrets
		s = command.AtHome(s) // no shell replaces a ~ within quotes
		line := conf.Endpoint(s)
		if s.Cwd != "" {
			line = "cd " + shellescape.Quote(s.Cwd) + " && " + line
		}
		return hint.With(err, "run its command in a shell to see more:\n  %s", line)
	}
	return hint.With(err, "%s", URLHint(err))
}

// URLHint returns what to do about a server that cannot be reached, by the cause.
func URLHint(err error) string {
	var status *upstream.StatusError
	code := 0
	if errors.As(err, &status) {
		code = status.Code
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check that the server is running, and the port of its url in the config"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return "check the path of its url in the config: no MCP server is at this one, and many are at /mcp or /sse"
	case code == http.StatusBadRequest && strings.Contains(err.Error(), "HTTPS"):
		return "it speaks TLS at this port: write https:// in its url"
	case code >= http.StatusInternalServerError:
		return "the server or a proxy before it fails: its own log says more"
	}
	return "check its url in the config, the network, and that the server is running"
}

// An explanation is the reason why a server cannot be used, without its name.
type explanation struct{ Text, Hint, Stderr string }

// Explain splits the error of a server that did not start into its parts. timeout is the value of
// --timeout.
func Explain(err error, timeout time.Duration) explanation {
	why := explanation{Text: err.Error()}
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		why = explanation{failure.Cause.Error(), failure.Hint, failure.Stderr}
		if failure.Code == transports.CodeAuthRequired {
			why.Text = "auth required: " + why.Text
			if command, ok := strings.CutPrefix(failure.Hint, `run "dynmcp login `); ok {
				why.Text = fmt.Sprintf("auth required: run `dynmcp login %s (%v)", strings.Replace(command, `"`, "`", 1), failure.Cause)
				why.Hint = ""
			}
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		why.Text = fmt.Sprintf("timed out after %dms", timeout.Milliseconds())
		why.Hint = "raise --timeout to give it more time"
	}
	if with, ok := errors.AsType[*hint.Error](err); ok {
		why.Hint = with.Hint
	}
	return explanation{cli.Secrets.String(why.Text), cli.Secrets.String(why.Hint), cli.Secrets.String(why.Stderr)}
}
