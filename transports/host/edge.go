package host

// An Edge carries the messages of a session to its host. It knows no protocol: it writes,
// reports when the host is gone, and drops messages that a slow host does not take. It reads
// on its own, and passes the host's messages to [Session.Receive].
type Edge interface {
	// Write queues one message, given in pieces, in the order of the calls. It must not block or
	// keep the pieces. about is the request that the message answers or belongs to, nil if
	// none. The error is wire.ErrFull if the message was dropped because the host reads too
	// slowly, and any other error if the host is gone.
	Write(about *Request, class Class, parts ...[]byte) error
	// Drop reports that a request is not answered, because its host cancelled it or the session
	// ends: nothing more is written about it. Like Write it must not block.
	Drop(about *Request)
	// AwaitRoom blocks while the queue for the host is too long to add to it. An edge that ends
	// the sessions of slow hosts instead returns at once.
	AwaitRoom()
	// Gone is closed when the host said that it waits for nothing more, or cannot be reached.
	Gone() <-chan struct{}
}

// A Class determines how an edge treats a message for a host that reads too slowly.
type Class int

const (
	Response   Class = iota // an answer to a request: never dropped
	Essential               // reports a change, or ends something: never dropped
	Ordinary                // dropped when far too much is queued
	Expendable              // progress and log messages: dropped while much is queued
	Latest                  // not accepted while much is queued, and offered again later
)
