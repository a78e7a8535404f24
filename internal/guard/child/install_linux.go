package child

import (
	"strconv"
	"time"
)

const (
	// InstallLimit is how long a tree that installs may continue to work after it was asked
	// to end.
	InstallLimit = time.Minute
	// installQuiet is how long such a tree must do nothing to count as done: long enough
	// for the next answer of a slow registry.
	installQuiet = 5 * time.Second
)

// An installation tracks a tree that must not be ended while it works.
type installation struct {
	work   int64            // workOf the session at its last change
	over   time.Time        // when it counts as done, unless it works
	giveUp time.Time        // when it is ended in any case
	look   <-chan time.Time // when to check next; nil unless an end is pending
}

// begin delays the end of a command's session.
func (i *installation) begin(session int) {
	now := time.Now()
	*i = installation{work: workOf(session), over: now.Add(installQuiet), giveUp: now.Add(InstallLimit)}
	i.look = time.After(installQuiet / 10)
}

// done reports whether the session was idle long enough, or has reached InstallLimit.
func (i *installation) done(session int) bool {
	now := time.Now()
	if work := workOf(session); work != i.work {
		i.work, i.over = work, now.Add(installQuiet)
	}
	i.look = time.After(installQuiet / 10)
	return now.After(i.over) || now.After(i.giveUp)
}

// workOf sums the processor time and the bytes read and written by the processes of a
// session, including reaped children. Its only meaning is that a session whose sum stays
// the same is idle.
func workOf(session int) (work int64) {
	all, _ := processes(func(fields []string) bool { return number(fields[3]) == int64(session) })
	for _, p := range all {
		work += p.Ticks
		io, _ := readFile("/proc/" + strconv.Itoa(p.Pid) + "/io")
		for _, line := range split(io, '\n') { // "rchar: 1", "wchar: 1", and others
			if len(line) > 7 && line[1:7] == "char: " {
				work += number(line[7:])
			}
		}
	}
	return work
}
