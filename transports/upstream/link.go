package upstream

// A link carries messages between a Conn and its upstream. It passes received messages to
// Conn.receive in the order of the wire, and the end of the transport to Conn.end. Its
// methods except sendInitialized and close do not block.
type link interface {
	// sendRequest sends the request of a call that is in flight under id.
	sendRequest(call *Call, id int64) error
	// send sends a notification or a response.
	send(message ...[]byte) error
	// sendInitialized sends the notification that ends the handshake.
	sendInitialized(message ...[]byte) error
	// kill ends a child, and everything that it started, at once.
	kill()
	// stderr returns the last lines of a child's stderr.
	stderr() string
	// close ends the transport and returns when it has ended.
	close()
}

// noProcess is the part of a link that has no child.
type noProcess struct{}

func (noProcess) kill()          {}
func (noProcess) stderr() string { return "" }
