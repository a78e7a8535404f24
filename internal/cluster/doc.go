// Package cluster lets the replicas of one service know each other and agree on which of
// them runs what is to run once. It stands on a store (package kv) that has one order of
// changes, and knows neither the store's make nor how replicas reach each other.
//
// [Join] makes a process a [Member]. [Replica.Take] takes the [Lease] of a name, of which
// there is one in the cluster at a time; [Replica.Where] says where it is best taken.
// [Replica.Drain] and [Replica.Close] leave so that nobody waits.
//
// # Records
//
// All are in one bucket. member/ID is what a replica says of itself; it is updated at its
// last revision every [Beat], and its owner makes it, another member deletes it. lease/NAME
// names an owner, by ID and epoch. It needs no renewal: it is valid as long as the record
// of its owner is there and in that epoch, so a thousand leases cost what none cost. All
// changes of both name the revision that is changed.
//
// An epoch is what a replica runs without an interruption. It ends when the replica was
// not valid for a moment or was declared dead; everything held is lost then, and the next
// epoch's leases are new ones. Every attempt to begin an epoch has a number of its own, so
// an epoch that is not in the store now, and was, will never be there again.
//
// # Validity
//
// A replica B may run what it holds until the latest of
//
//	sent(the last beat that arrived) + Validity
//	sent(the oldest of the last promises of all that it needs) + Validity,
//	    but not after sent(the last beat that arrived) + Patience
//
// The second is for when the store is away, in an election of some seconds for instance.
// The record says whom B knew when it was sent: its electors. A promise is an elector's
// answer that it will not agree for [TTL] that B is dead. B needs those of all of them, or of
// all but one where there are several; and that for the last beat that arrived, and for every
// one sent since, of which it is not known whether it arrived.
//
// A replica C may declare B dead, which is to delete its record at the revision C saw last,
// when it saw that revision TTL ago, and two of B's electors at that revision agree, or the
// only one; C may be one of them. An elector agrees when it saw that revision TTL ago as well
// and has not promised in the last TTL, and promises nothing at that revision any more. Where
// too few can be asked, or there are none, C waits for [Patience] + TTL instead. C counts only
// time in which its own beats arrived: when the store was away for all, all are given time to
// come back.
//
// So one replica may be away while the store is, and those that are left go on: a machine
// that is lost may have had both a replica and the leader of the store. What it costs is that
// the last of three, when two die at once, waits: they might promise each other what they do,
// where the store is not.
//
// A lease whose owner is gone, or in another epoch, is free, and is taken by an update at
// its revision. What a replica sees may be old and may have gaps (of several changes of one
// record only the last may be seen, so that a lease can be seen before its owner), and so
// whether the owner is gone is asked of the store itself.
//
// # Why nothing runs twice
//
// Let B run something, under a lease of its epoch, until a time t. Its record is not
// deleted by another before t + TTL - Validity:
//
// Let C delete B's record, sent at d, at revision ρ. Had B known of a later beat than ρ to
// have arrived the deletion would conflict, and so would it if ρ were older than the last
// beat that B knows of. So ρ is that beat, or the one after it, of which B does not know
// whether it arrived: it is one, because all attempts since name the same revision. C saw ρ
// after it was sent.
//
//   - t follows from a beat. It was sent no later than ρ, so d ≥ sent(ρ) + TTL ≥ t + TTL -
//     Validity.
//   - t follows from promises, and ρ was sent when t was computed. If C waited for Patience,
//     d ≥ sent(ρ) + Patience + TTL, and t is at most Patience after the beat before. If not,
//     one of those who agreed, D, had promised what t needed, since B can do without one of
//     ρ's electors only where two agreed. D promised at p, after it was asked for; so t ≤ p +
//     Validity. It had not yet agreed, or it would have refused: it keeps apart from what it
//     sees at which revision it agreed. So it agreed at p + TTL or later, as it kept what it
//     promised, or had forgotten it with the record and saw that anew after p.
//   - t follows from promises, and ρ was sent later: t is at most Validity after it was
//     computed, and d ≥ sent(ρ) + TTL.
//
// B itself begins its next epoch only when all that it held was released, and leaves then
// too, or at t + TTL - Validity. The others take what B held when its epoch is gone, and by
// the store's order only one of them does. A lease that C wrote is C's own if C is valid
// after the write was answered: it was not deleted before that moment, so the write came in
// its epoch. If it is not, the lease is not used, and deleted if it is there; the same is
// done with one whose write was not answered.
//
// # Broken records
//
// A record that nobody of us wrote, or of which a bit was changed, is told by its sum
// (record.go). It stops nothing: it is written again or deleted, at its revision ρ.
//
//   - Of a member: its next beat takes its place. It conflicts at first, and what is found is
//     no other epoch, so a member that is still valid goes on. One that sends no more beats is
//     declared dead at ρ, after Patience + TTL: whom it knew last is not known. Its last beat
//     that arrived is older than ρ, and what it may run ends as computed above for C that waits.
//   - Of a lease: its holder writes it again when it sees ρ. Another takes it, or it is deleted,
//     when the records of all members in the store have Seen ≥ ρ. A member says so when it has
//     seen ρ, and not while it holds the lease at an older revision: then it has lost and
//     released it, or has written it at ρ, and taking it at ρ conflicts. A member that has
//     written the lease and does not know it yet uses it only if nothing later was seen.
//
// # Pauses and clocks
//
// Between any two steps B can be stopped, or its machine suspended. It cannot see to its
// own end then; [Options.Extend] is told t, absolutely, so that what B has started can be
// killed by others (package guard). TTL - Validity is what they have for it, and what clocks
// may differ in speed over some seconds. B also can be stopped after Take has looked at the
// clock for the last time: what it starts when it goes on is started under the same
// deadline, which has passed, and which the next epoch does not move on before the lease
// was released. Wall clocks are never read. On Linux the clock goes on while the machine
// is suspended (clock_linux.go).
//
// What all of this relies on: the store loses no change that it has confirmed, its Get
// returns the last change, and whoever has a lease starts nothing without that deadline.
//
// # Where to read
//
// broken.go: records that are none. beat.go: the record, validity. votes.go: promises, who is dead. view.go: what is seen,
// what is deleted. lease.go: Take. place.go: Where.
package cluster
