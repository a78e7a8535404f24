package members

// Accessors for tests.

// Members returns the members that this replica knows, including itself, by name.
func (r *Replica) Members() []Member { return r.State().Members }

// Valid reports whether this replica may use its leases and take more.
func (r *Replica) Valid() bool {
	valid, _ := r.leases.valid(r.clock())
	return valid
}

// Revision returns the fencing token: a later holder of the lease has a higher one.
func (l *Lease) Revision() uint64 {
	l.held.leases.mu.Lock()
	defer l.held.leases.mu.Unlock()
	return l.held.revision
}
