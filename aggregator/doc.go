// Package aggregator is the MCP server that a host sees.
//
// A host's request takes one of two ways. The lists, the handshake and
// subscriptions (the control plane) come through an SDK server whose one
// middleware, control.go, answers them from the catalogue. Everything else
// (the data plane) comes as bytes to one switch on the method, handle.go:
//
//	Aggregator.handle            one switch on the method
//	└ use_tool, discover.go      which tool is meant, may it be called
//	  └ Aggregator.forward       in-flight record, forward.go
//	    ├ lazy.Upstream.Ready    a connection: one mutex, no I/O …
//	    ├ lazy.Upstream.Acquire  … or a start, on a goroutine of its own
//	    └ upstream.Conn.Start  raw params out; the raw result comes back on
//	                             the upstream's reader and goes out as it is
//
// What upstreams send unasked comes to upstream.go: their lists are fetched
// anew, their questions go to the session that has a call in flight there.
// What hosts would now read differently is announced by announce.go.
//
// The package owns sessions, what is in flight between them and upstreams, and
// the texts of failures. It never starts a process (lazy and transports do)
// and never renders a catalogue (catalog does).
package aggregator
