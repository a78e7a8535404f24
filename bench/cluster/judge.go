//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

// aftermath is how long after its end a fault may still cause failures, because broken connections are
// noticed late.
const aftermath = int64(time.Second)

// givenUp is how long after its last data a connection between replicas is closed (modules/cluster/internode:
// a ping after 2 s, 3 s for its answer).
const givenUp = 5 * int64(time.Second)

// judge compares the answers of hosts with the ledgers of servers, and both with the faults.
func (w *crowd) judge(faults []fault) error {
	books, err := ledger.Read(w.ledgers())
	if err != nil {
		return err
	}
	outages := w.outages(faults)
	var count [fates]int
	told := map[int]int{} // answers, by the call's number
	var denied, lost, surprises, shown int
	for _, r := range w.records {
		count[r.fate]++
		if r.call >= 0 && r.fate != forgotten {
			told[r.call]++
		}
		ran := books.Ran[nonce(r.call)]
		switch {
		case r.call < 0:
		case r.fate == notSent && ran > 0:
			denied++
			fmt.Printf("  call %d ran, and is reported as not sent: %s\n", r.call, r.text)
		case r.fate == succeeded && ran == 0:
			lost++
			fmt.Printf("  call %d succeeded, and did not run\n", r.call)
		}
		if r.fate == succeeded || w.excused(r, books, faults, outages) {
			continue
		}
		if surprises++; shown < 20 {
			shown++
			fmt.Printf("  %s, after %v, by %s, session of %s: %s\n    %.300s\n", w.describe(r), time.Duration(r.to-r.from).Round(time.Millisecond), w.name(r.entry), w.name(r.owner), fateNames[r.fate], r.text)
			fmt.Printf("    %s\n", w.context(r, books, faults))
		}
	}
	var said []string
	for fate, n := range count {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, fateNames[fate]))
		}
	}
	fmt.Printf("  %d calls: %s; %d processes of servers\n", w.made(), strings.Join(said, ", "), len(books.Processes))
	w.Must("calls whose hosts were told what became of them", len(told), w.made())
	w.Must("misrouted calls", count[misrouted], 0)
	w.Must("unanswered requests", count[unanswered], 0)
	w.Must("failures that do not say whether the call ran", count[unsaid], 0)
	twice := books.Twice()
	for _, nonce := range twice[:min(len(twice), 20)] {
		fmt.Printf("  %s ran %d times\n", nonce, books.Ran[nonce])
	}
	w.Must("calls that ran twice", len(twice), 0)
	w.Must("calls that ran and are said to be not sent", denied, 0)
	w.Must("calls that succeeded and are in no ledger", lost, 0)
	if !w.busy {
		w.Must("failures of what nothing was done to", surprises, 0)
	} else if surprises > 0 {
		fmt.Printf("  %d failures of what nothing was done to\n", surprises)
	}
	w.judgeOverlaps(books)
	w.failOver(books, faults)
	return nil
}

// maxStall is how long two processes of a server may overlap while the machine stalls.
const maxStall = 2 * time.Second

func (c *cluster) judgeOverlaps(books *ledger.Books) {
	overlaps, stalled := 0, 0
	for _, s := range servers {
		if s.place != "one" {
			continue
		}
		for _, o := range books.Overlaps(s.name) {
			// A timer of its guard ends a process in time. If the machine stalls for half a second,
			// the timer is late, but not by seconds.
			if o.Lasted() < maxStall && books.Stalled(o.Second.Start) {
				stalled++
				continue
			}
			if overlaps++; overlaps <= 20 {
				fmt.Printf("  %v\n", o)
			}
		}
	}
	if stalled > 0 {
		fmt.Printf("  %d processes of a server beside another one of its while the machine stood still, for less than %v\n", stalled, maxStall)
	}
	c.Must("processes of a server beside another one of its", overlaps, 0)
}

// describe returns a description of a request.
func (w *crowd) describe(r record) string {
	if r.call < 0 {
		return "an initialize"
	}
	return fmt.Sprintf("call %d of %s", r.call, w.servers[r.server].name)
}

func (c *cluster) name(replica int8) string {
	if replica < 0 {
		return "none"
	}
	return c.replicas[replica].name
}

// context returns the events around the time of a request.
func (w *crowd) context(r record, books *ledger.Books, faults []fault) string {
	at := func(t int64) string { return fmt.Sprintf("%+.3fs", time.Duration(t-r.from).Seconds()) }
	all := []string{"connected " + at(r.connected)}
	for _, f := range faults {
		if f.from < r.to+10*aftermath && f.to > r.from-10*aftermath {
			all = append(all, fmt.Sprintf("%s %s %s to %s", f.node.name, f.kind, at(f.from), at(f.to)))
		}
	}
	for _, p := range books.Processes {
		if r.call >= 0 && p.Server == w.servers[r.server].name && p.Start < r.to+10*aftermath && p.Last > r.from-10*aftermath && w.servers[r.server].place == "one" {
			all = append(all, fmt.Sprintf("process at %s %s to %s", p.Replica, at(p.Start), at(p.Last)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// excused reports whether a fault explains the failure of a request: a fault, while the request was in
// flight, of the replica of its connection, of its session or of its server; or NATS without a leader
// for longer than a lease, according to outages.
func (w *crowd) excused(r record, books *ledger.Books, faults []fault, outages []int64) bool {
	taken := []string{w.name(r.entry), w.name(r.owner)}
	if r.call >= 0 && w.servers[r.server].place == "one" {
		taken = append(taken, books.At(w.servers[r.server].name, r.from, r.to)...)
	}
	// A replica that is draining has another, unknown one begin sessions.
	elsewhere := slices.ContainsFunc(faults, func(f fault) bool {
		return f.replica >= 0 && f.replica == int(r.owner) && f.from < r.since && r.since < f.to+aftermath
	})
	for _, f := range faults {
		if f.replica < 0 || !elsewhere && !slices.Contains(taken, f.node.name) {
			continue
		}
		until := f.to + aftermath
		switch {
		case f.kind == killed && r.fate != forgotten:
			until = f.from + aftermath // later requests were not in flight
		case f.kind != killed && f.kind != ended:
			until = max(until, f.from+givenUp+aftermath)
		}
		if r.fate == forgotten {
			until = r.from // the host may return at any time
			if f.to < r.since {
				continue
			}
		}
		if f.from <= r.to && r.from <= until {
			return true
		}
	}
	if r.call < 0 || w.servers[r.server].place != "one" {
		return false
	}
	without := func(from, to int64) bool { // NATS had no leader
		return slices.ContainsFunc(outages, func(at int64) bool { return from <= at+aftermath && at-toldLate <= to })
	}
	return r.fate == notSent && (unplaced(w.servers[r.server].name, r, books, faults) || without(r.from, r.to)) || slices.ContainsFunc(books.Processes, func(p ledger.Process) bool {
		return p.Server == w.servers[r.server].name && r.from <= p.Last+aftermath && p.Last <= r.to && (lapsed(p, faults) || without(p.Last, p.Last))
	})
}

// toldLate is how long after the end of its leases a replica may log that it does not reach NATS: a
// heartbeat times out after 5 s.
const toldLate = 8 * int64(time.Second)

// outages returns the times at which a replica without a fault logged that it did not reach NATS for
// the duration of a lease, if another replica did so too; a single replica is its own failure. An
// undecided election is repeated, and may take that long.
func (w *crowd) outages(faults []fault) (all []int64) {
	said := map[string][]int64{}
	now, clock := time.Now(), ledger.Now()
	for i, n := range w.replicas {
		text, _ := os.ReadFile(n.log) // a missing log is empty
		for line := range strings.Lines(string(text)) {
			stamp, what, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil || !strings.Contains(what, "state cannot be reached: nothing new is placed") {
				continue
			}
			when := clock - int64(now.Sub(at))
			if !slices.ContainsFunc(faults, func(f fault) bool { return f.replica == i && f.from <= when && when-toldLate <= f.to+aftermath }) {
				said[n.name] = append(said[n.name], when)
			}
		}
	}
	for name, times := range said {
		for _, at := range times {
			for other, others := range said {
				if other != name && slices.ContainsFunc(others, func(its int64) bool { return max(at-its, its-at) <= toldLate }) {
					all = append(all, at)
					break
				}
			}
		}
	}
	return all
}

// election is how long NATS may have no leader after a fault of one of its servers.
const election = 10 * int64(time.Second)

// lapsed reports whether a process may have ended because its replica could not renew its lease: faults
// of one server of NATS after the other may have left NATS without a leader for the duration of a
// lease.
func lapsed(p ledger.Process, faults []fault) bool {
	const lease = 12 * int64(time.Second) // internal/cluster, Validity
	since := p.Last
	for again := true; again; {
		again = false
		for _, f := range faults {
			if f.replica < 0 && f.from < since && since <= f.from+election+aftermath {
				since, again = f.from, true
			}
		}
	}
	return p.Last-since >= lease
}

// unplaced reports whether faults explain that a server did not run while it was called: its replica
// had a fault or its lease had lapsed, and it could not be started elsewhere because of a fault of a
// server of NATS, which may first elect a leader, or of another replica.
func unplaced(server string, r record, books *ledger.Books, faults []fault) bool {
	var last *ledger.Process
	for i, p := range books.Processes {
		if p.Server != server || p.Start > r.to {
			continue
		}
		if p.Last >= r.from {
			return false // it ran
		}
		if last == nil || p.Last > last.Last {
			last = &books.Processes[i]
		}
	}
	if last == nil {
		return false
	}
	replica, elsewhere := lapsed(*last, faults), false
	for _, f := range faults {
		lasts := election
		switch {
		case f.replica >= 0 && f.node.name == last.Replica:
			replica = replica || f.from < last.Last+aftermath && last.Last < f.to+aftermath
			continue
		case f.replica >= 0:
			lasts = givenUp
		}
		elsewhere = elsewhere || f.from <= r.to && r.from <= max(f.to, f.from+lasts)+aftermath
	}
	return replica && elsewhere
}

// failOver prints how long it took until the servers of a killed replica answered again.
func (w *crowd) failOver(books *ledger.Books, faults []fault) {
	var most time.Duration
	var worst string
	n := 0
	for _, f := range faults {
		if f.kind != killed || f.replica < 0 {
			continue
		}
		for i, s := range w.servers {
			if s.place != "one" || !w.had(books, s.name, f) {
				continue
			}
			var first int64
			for _, r := range w.records {
				if int(r.server) == i && r.fate == succeeded && r.call >= 0 && r.from > f.from && (first == 0 || r.to < first) {
					first = r.to
				}
			}
			if first == 0 {
				continue // the calls ended before
			}
			n++
			if took := time.Duration(first - f.from); took > most {
				most, worst = took, fmt.Sprintf("%s of %s%s", s.name, f.node.name, beside(f, faults))
			}
		}
	}
	if n > 0 {
		fmt.Printf("  after SIGKILL of a replica a server that it had answered again after %v at most (%s), in %d cases\n", most.Round(10*time.Millisecond), worst, n)
	}
}

// had reports whether a replica ran a server at the beginning of a fault.
func (w *crowd) had(books *ledger.Books, server string, f fault) bool {
	return slices.ContainsFunc(books.Processes, func(p ledger.Process) bool {
		return p.Server == server && p.Replica == f.node.name && p.Start < f.from && p.Last > f.from-int64(5*ledger.Beat)
	})
}

// beside describes the other faults at the beginning of one.
func beside(f fault, faults []fault) (text string) {
	for _, other := range faults {
		if other.node != f.node && other.from < f.from+int64(10*time.Second) && other.to > f.from {
			text += fmt.Sprintf(", while %s was %s", other.node.name, other.kind)
		}
	}
	return text
}
