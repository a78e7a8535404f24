// Package wire reads and writes JSON-RPC messages as lines of bytes.
//
// It owns framing (one message per line, with tolerance for what real programs
// print), the scan of a message's envelope, and the few edits that a proxy makes:
// an id, a progress token, a tool's name. It never decodes a value it does not
// need and never encodes one it was given, so what passes through keeps its
// order of members, its number formats and its unknown members.
//
// It is not a JSON-RPC library: it knows nothing of calls, timeouts or sessions.
// Those are in the transports packages.
//
// reader.go and writer.go are the two ends of a connection, and cork.go has the
// writes that one read leads to leave together. A message that a Reader returns is lent
// until the next one, what a Writer is given is the caller's again when the call
// returns, and in between nothing large is copied. message.go, json.go and strings.go
// check what comes in; members.go finds and edits parts of what was checked, trusted.go is
// its walker.
package wire
