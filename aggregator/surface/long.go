package surface

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A Kind is a surface that a config's expose may name.
type Kind struct {
	Name  string          // one of schema.Surfaces
	Start func(Run) Maker // called once in a run
}

// A Maker makes a surface for each config of a run.
type Maker interface {
	Surface(*schema.Config) Surface
	// Close ends the Maker at the end of the run, when no call is running.
	Close()
}

// Plain returns the Start of a surface that keeps nothing between calls.
func Plain(of func(*schema.Config) Surface) func(Run) Maker {
	return func(Run) Maker { return plain(of) }
}

type plain func(*schema.Config) Surface

func (of plain) Surface(cfg *schema.Config) Surface { return of(cfg) }
func (plain) Close()                                {}

// A Run is what a surface has of the run for answers that outlive a request.
type Run interface {
	Log() *slog.Logger
	// Memory bounds the bytes that are held for hosts.
	Memory() *membudget.Budget
	// Context ends with the run.
	Context() context.Context
	// Go calls f on a goroutine that the end of the run waits for.
	Go(f func())
	// Guard calls f, and logs a panic.
	Guard(f func())
	// Forget drops the question in a result, which no host will answer.
	Forget(result json.RawMessage)
}

// A Long is a call whose answer makes requests of its own while it runs. A host of the stateless era
// is asked what these ask in the result of the call, which its next request continues.
type Long interface {
	Session
	// HostRequest is the request of the call, HostParams a copy of its params.
	HostRequest() *host.Request
	HostParams() json.RawMessage
	// Share names the user whose share of the memory and the processes the call takes.
	Share() string
	// SendInner makes a request inside HostRequest; to says how a tool is called, nil for other requests.
	SendInner(r *host.Request, to *Target)
	// Inner returns the session for a request inside HostRequest.
	Inner(r *host.Request) Session
	// ReplyWithin answers with a result whose texts are shortened to so many characters, once.
	ReplyWithin(result json.RawMessage, most int)
	// Park answers the request with the members of inputRequests. Its answer goes on with the request that Resume
	// returns the same what for; without one, what is abandoned.
	Park(what Parked, questions json.RawMessage)
	// Resume returns what the request continues, with the answers of the host; nil if it continues nothing.
	// If what it continued is gone, the request is answered, and over is true.
	Resume() (what Parked, answers json.RawMessage, over bool)
}

// A Parked waits for the answers of a host. It is comparable.
type Parked interface {
	Abandon(reason json.RawMessage)
}

// MetaNote is the member of a result's _meta with texts for the model, for the target of a program.
const MetaNote = "dynmcp/note"
