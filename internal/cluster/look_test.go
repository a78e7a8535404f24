package cluster

// What tests look at.

// Members returns the members that this replica knows, itself too, by name.
func (r *Replica) Members() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Member, 0, len(r.view.members))
	for _, m := range r.view.members {
		all = append(all, m.Member)
	}
	sortMembers(all)
	return all
}

// Valid reports whether this replica may run what it holds, and take more.
func (r *Replica) Valid() bool {
	at := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.validLocked(at)
}

// Revision is the fencing token: whoever takes the lease later has a higher one.
func (l *Lease) Revision() uint64 {
	l.held.r.mu.Lock()
	defer l.held.r.mu.Unlock()
	return l.held.revision
}
