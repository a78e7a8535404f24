package notify

import "slices"

// The completion of an elicitation by URL is sent to the sessions whose hosts were asked.

const (
	// maxElicitations is how many are remembered per session; the oldest are dropped.
	maxElicitations = 64
	// maxElicitationID limits the length of remembered ids.
	maxElicitationID = 256
)

// An elicitation is identified by its server and id.
type elicitation struct{ server, id string }

// Elicited records that a server asks the session's host to visit a URL.
func (to *Recipient[S]) Elicited(server, id string) {
	r, e := to.registry, elicitation{server, id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(id) > maxElicitationID || r.byID[to.ID] != to || slices.Contains(to.elicitations, e) {
		return
	}
	if len(to.elicitations) == maxElicitations {
		r.forgetLocked(to, to.elicitations[0])
		to.elicitations = slices.Delete(to.elicitations, 0, 1)
	}
	to.elicitations = append(to.elicitations, e)
	if r.elicited[e] == nil {
		r.elicited[e] = set[S]{}
	}
	r.elicited[e][to] = true
}

// forgetLocked reverses Elicited in the registry.
func (r *Registry[S]) forgetLocked(to *Recipient[S], e elicitation) {
	if delete(r.elicited[e], to); len(r.elicited[e]) == 0 {
		delete(r.elicited, e)
	}
}

// Elicited returns the sessions whose hosts the upstream has asked to visit a URL.
func (src Source[S]) Elicited(id string) []S {
	r := src.Registry
	r.mu.Lock()
	var all []*Recipient[S]
	for to := range r.elicited[elicitation{src.Server, id}] {
		all = append(all, to)
	}
	r.mu.Unlock()
	return inOrder(all, src.Sees)
}
