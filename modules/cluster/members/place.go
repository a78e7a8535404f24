package members

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Where returns the member that holds a lease, with held true, or the one that should take it:
// by rendezvous hashing over the members that do not drain and sent a recent heartbeat. It
// skips a draining holder, and members whose IDs are in except. The ID is "" if no member
// is left.
func (r *Replica) Where(name string, except ...string) (m Member, held bool) {
	at := r.clock()
	key := leaseKey(name)
	mine, epoch := r.leases.holder(key) // the view may lack it
	draining := isClosed(r.leases.leaving)
	if mine != nil && !draining && !slices.Contains(except, r.id) {
		return Member{ID: r.id, Name: r.options.Name, Address: r.options.Address, Version: r.options.Version, Epoch: epoch}, true
	}
	if _, holder := r.view.lease(key); holder != nil && holder.ID != r.id && !holder.Draining && !slices.Contains(except, holder.ID) {
		return holder.Member, true
	}
	var heard, suspect []Member
	for _, m := range r.view.all() {
		switch {
		case slices.Contains(except, m.ID), m.Draining, m.broken, m.ID == r.id && draining:
		case m.ID != r.id && r.heartbeat.suspect(m, at):
			suspect = append(suspect, m.Member)
		default:
			heard = append(heard, m.Member)
		}
	}
	if len(heard) == 0 {
		heard = suspect // the store may be away
	}
	m, _ = Rendezvous(name, heard)
	return m, false
}

// Rendezvous returns the member with the highest hash of the given name and its own. All members
// are chosen about equally often, and when one joins or leaves only its names move. Members of
// the same name share their names.
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
