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
// reader.go and writer.go are the two ends of a connection. cork.go combines the
// writes that one read causes. A message returned by a Reader is valid until the next one
// is read, a Writer does not keep its arguments, and nothing large is copied in between.
// message.go, json.go and strings.go check input; members.go finds and edits parts of
// checked input, and trusted.go walks it.
package wire
