// Package lazy manages the life cycle of upstreams: when one is started, how often a
// start is tried, when it is closed.
//
// An [Upstream] costs nothing until [Upstream.Acquire] is called. Callers that come
// while it starts share that start, and one that gives up does not end it for the others.
// Failures are counted against a budget; a server that never started and used it up is
// evicted. After a connection was lost, the next use reconnects. If that fails, or the new
// connection is lost soon as well, the pauses grow.
//
// A server whose entry isolates sessions or principals is started separately for each owner:
// [Set.Dedicate] returns the owner's upstream. Their number is limited.
//
// [Options.Load] decides how a server is started and what is listed; the aggregator
// decides what its state means to a host. The package starts goroutines only for loads and to
// watch connections; Set.Close waits for all of them.
//
// Read state.go, upstream.go and retry.go, then set.go and dedicated.go.
package lazy
