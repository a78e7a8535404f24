// Package wire reads and writes JSON-RPC messages as lines of bytes.
//
// It owns framing (one message a line, with tolerance for what real programs
// print), the scan of a message's envelope, and the few splices a proxy makes:
// an id, a progress token, a tool's name. It never decodes a value it does not
// need and never encodes one it was given, so what passes through keeps its
// key order, its number formats and its unknown members.
//
// It is not a JSON-RPC library: it knows nothing of calls, timeouts or
// sessions. Those live in the transports package.
package wire
