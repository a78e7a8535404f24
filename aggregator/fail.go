package aggregator

import (
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// fail answers a request that could not be forwarded. An upstream's own error
// passes as it is.
func (q request) fail(err error, asText bool) {
	q.observeRefusal(err)
	err, r := q.reserved(err), q.r
	failure, isFailure := errors.AsType[*transports.Failure](err)
	rpc, isTheirs := errors.AsType[*wire.Error](err)
	switch {
	case isTheirs && !isFailure:
		r.Reply(nil, rpc)
	case asText:
		r.Reply(results.Error(q.inWords(err)), nil)
	case isFailure:
		r.Reply(nil, failure.Wire())
	default:
		r.Reply(nil, &wire.Error{Code: transports.CodeShuttingDown, Message: err.Error()})
	}
}

// inWords puts a failure in words for a model: what failed, whether the call ran, what to
// do, and as much of the cause as is left in it.
func (s session) inWords(err error) string {
	var evicted *lazy.EvictedError
	var failure *transports.Failure
	switch {
	case errors.As(err, &evicted) && errors.As(evicted.Err, &failure):
		return failure.Text() + fmt.Sprintf("\n%s failed to load after %d attempts and will no longer be offered.", evicted.Upstream, evicted.Attempts) + readmitted
	case errors.As(err, &failure):
		said := *failure
		if info, ok := s.agg.catalog.View().Server(said.Upstream); ok {
			said.Upstream = info.Called
		}
		text := said.Text()
		if how := s.Surface().HowToLoad; how != nil && failure.Code == transports.CodeBackingOff {
			text += "\n" + how(failure.Upstream) + " tries it at once."
		}
		return text
	}
	return err.Error()
}
