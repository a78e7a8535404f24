// Package lazy manages the life cycle of upstreams: when one is started, how often a
// start is tried, and when it is closed.
//
// An [Upstream] costs nothing until [Upstream.Acquire] is called. Callers that come
// while it starts share that start. A caller that gives up does not end it for the others.
// Failures are counted against a budget. A server that used its budget up without ever
// starting is evicted. After a connection was lost, the next use reconnects. If that fails,
// or the new connection is lost soon as well, the pauses between attempts grow.
//
// A server whose entry isolates sessions or principals is started separately for each owner:
// [Set.Dedicate] returns the owner's upstream. Their number is limited.
//
// [SetOptions.Load] decides how a server is started and what is listed. The aggregator
// decides what the state of an upstream means to a host. Set.Close waits for all goroutines
// of the package.
//
// Read state.go, upstream.go and retry.go, then set.go and dedicated.go.
package lazy
