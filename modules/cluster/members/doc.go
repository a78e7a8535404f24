// Package members lets the replicas of one service discover each other, and grants each name a
// lease that one replica holds at a time. It is built on a store (package kv) with a total
// order of changes, and knows neither its implementation nor how replicas reach each other.
//
// [Join] makes a process a [Member]. [Replica.Take] takes the [Lease] of a name;
// [Replica.Where] returns the member that should take it. [Replica.Drain] and [Replica.Close]
// leave without making others wait.
//
// # Records
//
// All records are in one bucket. A replica writes member/ID with every heartbeat, each
// [HeartbeatInterval], at its last revision; another member may delete it. lease/NAME names
// an owner, by ID and epoch. It is not renewed: it is valid while the record of its owner
// exists in that epoch, so leases cost nothing while they are held. Every change names the
// revision that it replaces.
//
// An epoch ends when the replica was not valid for a moment or has expired. All its leases are
// lost then; the next epoch has new ones. Every attempt to begin an epoch has a number of its
// own, so an epoch that has disappeared from the store never returns.
//
// # Validity
//
// A replica B may use its leases until t = sent(the last heartbeat known to have arrived) +
// [Validity]. Another replica C expires B by deleting B's record at the last revision that C
// has seen, once C saw that revision [TTL] ago. C counts only time in which its own
// heartbeats arrived: after an outage of the store all can come back.
//
// Validity is 12 s, so that an election in the store, which takes at most ten, costs no lease.
// This is the only protection against elections: replicas do not vote. The price is a
// fail-over of 15 s. TTL is 3 s longer than Validity. In that time guards (package guard) end
// the processes of a stopped replica; it also covers clocks that differ in speed.
//
// A lease whose owner is gone, or in another epoch, is free, and is taken by an update at
// its revision. A view may be old and have gaps (a lease can be seen before its owner), so
// the store itself is asked whether the owner is gone.
//
// # Why nothing runs twice
//
// Let B run something, under a lease of its epoch, until t. Its record is not deleted by
// another before t + TTL - Validity:
//
// Let C delete it, at d, at revision ρ. Had a heartbeat arrived after ρ, the deletion would
// conflict. So ρ was written by the heartbeat that t follows from or after it, and C saw ρ
// after that heartbeat was sent: d ≥ seen(ρ) + TTL ≥ sent + TTL = t + TTL - Validity.
// Heartbeats whose answer is lost do not move t.
//
// B itself begins its next epoch, or deletes its record, only when all its leases were
// released. The others take the leases of B when its epoch is gone, and by the store's order
// only one of them does. A lease that C wrote is C's own if C is valid after the write was
// answered: C was not deleted before that moment, so the write came in its epoch. Otherwise
// the lease is not used, and is deleted if it exists. The same is done with a lease whose write
// was not answered.
//
// # Broken records
//
// A record that no replica wrote, or with a changed bit, has a wrong checksum (record.go). It is
// rewritten or deleted, at its revision ρ.
//
//   - Of a member: its next heartbeat replaces it. That heartbeat conflicts at first, but the
//     member finds no other epoch, so it stays valid. A member that sends no more heartbeats
//     expires at ρ as at any other revision.
//   - Of a lease: its holder writes it again when it sees ρ. Another takes it, or it is
//     deleted, when the records of all members in the store have Seen ≥ ρ. A member writes
//     that when it has seen ρ and does not hold the lease at an older revision: it has lost and
//     released the lease, or has written it at ρ, so that taking it at ρ conflicts. A member
//     that has written the lease and does not know it yet uses it only if it saw nothing later.
//
// # Pauses and clocks
//
// Between any two steps B can be stopped, or its machine suspended, so [ReplicaOptions.Extend] is
// told t as an absolute time at which guards kill what B has started. B can also be stopped
// after Take has read the clock for the last time. What B starts later has the same deadline,
// which has passed by then, and which the next epoch does not extend before the lease is
// released. A wall clock can only make it earlier. On Linux the clock continues while the
// machine is suspended (clock_linux.go).
//
// All of this relies on a store that loses no change that it has confirmed and whose Get
// returns the last change, and on holders that start nothing without that deadline.
//
// # Where to read
//
// heartbeat.go: the record. lease.go: what this replica holds, and validity. take.go: Take.
// view.go: what is seen. sweep.go: what is deleted. broken.go: broken records. place.go: Where.
package members
