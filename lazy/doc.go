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
// A call of a tool of a lazy server waits in the queue of that server. These are the goroutine that waits, and the
// one that starts the server for all that wait (aggregator/journeys_unix_test.go compares):
//
//	wait.listed                 until the server has listed its tools [aggregator/wait.go]
//	└ wait.start                asks for the server                   [aggregator/wait.go]
//	  └ Fleet.Acquire           with a place in the server's queue    [fleet/load.go]
//	    └ Upstream.Acquire      counts the user                       [lazy/upstream.go]
//	      └ Upstream.acquire    joins the start in progress           [lazy/upstream.go]
//
//	Upstream.load               one start at a time                   [lazy/upstream.go]
//	└ Upstream.tryLoad          within the retry budget               [lazy/upstream.go]
//	  └ Fleet.load              again if the era or the place differs [fleet/load.go]
//	    └ Fleet.loadOnce        connects, shakes hands, lists         [fleet/load.go]
//	      └ Placer.Connect      here, or on the replica that has it   [remote/place.go]
//
// Read state.go, upstream.go and retry.go, then set.go and dedicated.go.
package lazy
