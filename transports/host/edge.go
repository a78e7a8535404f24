package host

// An Edge carries the messages of a session to its host. It knows no protocol:
// it writes, says when the host is gone, and sheds what a slow host does not
// take. Reading is its own business too: it hands what the host sends to
// [Session.Receive].
type Edge interface {
	// Write queues one message, given in pieces, in the order of the calls. It
	// must not block, nor keep the pieces. about is the request that the message answers or belongs to,
	// nil if absent. The error is wire.ErrFull where the message was
	// dropped because the host reads too slowly, any other where the host is gone.
	Write(about *Request, class Class, parts ...[]byte) error
	// Drop says that a request is not answered, because its host cancelled it or
	// we end: nothing more is written about it. Like Write it must not block.
	Drop(about *Request)
	// AwaitRoom blocks while so much waits for the host that nobody should bring
	// more. An edge that ends the sessions of slow hosts instead returns at once.
	AwaitRoom()
	// Gone is closed when the host waits for nothing any more: it said so, or it cannot be
	// reached.
	Gone() <-chan struct{}
}

// A Class says what an edge may do with a message for a host that reads too
// slowly.
type Class int

const (
	Response   Class = iota // the answer to a request: never dropped
	Essential               // says what changed, or ends something: never dropped
	Ordinary                // dropped when far too much waits
	Expendable              // progress, log messages and what MCP does not know: lost while much waits
	Latest                  // refused while anything much waits, and offered again
)
