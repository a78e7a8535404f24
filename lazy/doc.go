// Package lazy owns the lives of upstreams: when one is started, how often a
// start is tried, when it is closed.
//
// An [Upstream] is a line of text until [Upstream.Acquire] is called. Callers
// that come while it starts share that start, and one that gives up does not
// end it for the others. Failures are counted against a budget; a server that
// never started and used it up is evicted. After a connection was lost the next
// use reconnects, with growing pauses if that fails or the new one is lost soon
// as well.
//
// A server whose entry isolates sessions or principals is started for each owner by
// himself: [Set.Own] has an upstream for each, of which there may be so many.
//
// How a server is started and what is listed is the business of
// [Options.Load]; what its state means to a host is the aggregator's. The
// package starts goroutines only for loads and to watch connections; Set.Close
// waits for all of them.
//
// Read state.go, upstream.go, retry.go and idle.go, then set.go and own.go.
package lazy
