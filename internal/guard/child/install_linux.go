package child

import (
	"strconv"
	"time"
)

const (
	// InstallLimit is how long a tree that installs may go on after its end was
	// asked for, while it works.
	InstallLimit = time.Minute
	// installQuiet is how long such a tree must do nothing to be taken for done:
	// long enough for the next answer of a slow registry.
	installQuiet = 5 * time.Second
)

// An installation is the wait for a tree that must not be ended while it works.
type installation struct {
	work   int64            // that the tree had done when it last had done some
	over   time.Time        // when it is taken for done, if it does nothing
	giveUp time.Time        // when it is ended even so
	look   <-chan time.Time // when to look next; nil unless an end waits
}

// begin has the end of the session of a command wait.
func (i *installation) begin(session int) {
	now := time.Now()
	*i = installation{work: workOf(session), over: now.Add(installQuiet), giveUp: now.Add(InstallLimit)}
	i.look = time.After(installQuiet / 10)
}

// done reports whether the session has done nothing for long enough, or all that
// it may.
func (i *installation) done(session int) bool {
	now := time.Now()
	if work := workOf(session); work != i.work {
		i.work, i.over = work, now.Add(installQuiet)
	}
	i.look = time.After(installQuiet / 10)
	return now.After(i.over) || now.After(i.giveUp)
}

// workOf sums the processor time and the bytes read and written of the processes
// of a session, those of children that were reaped included. It means nothing but
// that a session in which it stays the same does nothing.
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
