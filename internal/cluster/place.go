package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Where returns the member that has a lease, with held, or where it is best taken: by
// rendezvous hashing over the members that do not drain and that were heard of lately.
// A holder that drains is no answer. Members whose IDs are in except are passed over,
// those that could not be reached for instance. There may be none: then the ID is "".
func (r *Replica) Where(name string, except ...string) (m Member, held bool) {
	at := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	key := leaseKey(name)
	if r.leases[key] != nil && !r.draining && !slices.Contains(except, r.id) { // which may not be seen yet
		return Member{ID: r.id, Name: r.options.Name, Address: r.options.Address, Version: r.options.Version, Epoch: r.epoch}, true
	}
	if l := r.view.leases[key]; l != nil && !l.deleted && l.Owner != r.id { // or it is released
		owner := r.view.members[l.Owner]
		if owner != nil && owner.Epoch == l.Epoch && !owner.Draining && !slices.Contains(except, l.Owner) {
			return owner.Member, true
		}
	}
	var fresh, silent []Member
	for id, m := range r.view.members {
		switch {
		case slices.Contains(except, id), m.Draining, m.broken, id == r.id && r.draining:
		case id == r.id || at < m.heard()+Validity:
			fresh = append(fresh, m.Member)
		default:
			silent = append(silent, m.Member)
		}
	}
	if len(fresh) == 0 {
		fresh = silent // the store is away: nobody's beats are seen
	}
	m, _ = Rendezvous(name, fresh)
	return m, false
}

// Rendezvous returns the member with the highest hash of a name and its own. Each member
// is chosen for about as many names as any other, and when one comes or goes only the
// names it has or had move. Members of one name share what that name is chosen for.
func Rendezvous(name string, among []Member) (best Member, ok bool) {
	var high, highID uint64
	for _, m := range among {
		h := weight(name, m.Name)
		if ok && h < high {
			continue
		}
		id := weight(name, m.ID)
		if !ok || h > high || id > highID {
			best, ok, high, highID = m, true, h, id
		}
	}
	return best, ok
}

func weight(name, member string) uint64 {
	b := make([]byte, 0, 128)
	b = binary.AppendUvarint(b, uint64(len(name)))
	b = append(append(b, name...), member...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}
