package child

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Name makes a program a guard if its zeroth argument begins with it. The command's path
// follows, and then the command's own arguments from the zeroth on. Suffixes of the name, in
// this order, list the other files that the guard inherits.
const (
	Name     = "dynmcp-guard"
	Fenced   = "-fenced"   // a fence: FenceSize bytes, the deadline
	After    = "-after"    // the words of a command, to be read to their end
	Landlock = "-landlock" // a ruleset for the command; it is complete when the filter is
	Seccomp  = "-seccomp"  // a filter for the command, to be read to its end
	Notify   = "-notify"   // a socket: a filter is read from it, and its notification file sent back
)

// Environment is the first variable of a guard; those of its command follow. The Go
// runtime uses the first of equal names. With one processor it starts no extra threads, which
// saves a tenth of the guard's time.
const Environment = "GOMAXPROCS=1"

// An order is one byte; an event is a line of a name and a number.
const (
	OrderTerminate  = 'T'
	OrderKill       = 'K'
	OrderEnd        = 'E' // as if the parent were gone
	OrderInstalling = 'I'
	OrderInstalled  = 'D'
	OrderReap       = 'R' // the parent runs what runs after the tree

	EventStarted = "started" // pid
	EventFailed  = "failed"  // errno
	EventEnded   = "ended"   // wait status
	EventFenced  = "fenced"  // 0; the deadline of the fence has passed
)

// File descriptors that the guard inherits besides the command's streams.
const (
	ordersFile = 3
	eventsFile = 4
	firstFile  = 5 // the first file listed by the name
)

// FenceSize is the size of a deadline.
const FenceSize = 8

// Grace is the time after SIGTERM for processes that a command left behind.
const Grace = 500 * time.Millisecond

func init() {
	if len(os.Args) >= 3 && len(os.Args[0]) >= len(Name) && os.Args[0][:len(Name)] == Name {
		// os.Exit would sleep for a second under the race detector.
		syscall.Exit(serve(os.Args[1], os.Args[2:]))
	}
}

// A guard runs one command. One goroutine does all of its work: while it looks at a child
// nobody else reaps it, so a pid cannot have been reused.
type guard struct {
	command int // its pid, 0 once it has been reaped
	orders  <-chan byte
	signals chan os.Signal
	sweep   <-chan time.Time // when to kill the rest; nil until the tree must end
	pause   time.Duration    // between that sweep and the next
	giveUp  time.Time        // when to give up on processes that cannot be killed
	fenced  bool             // the fence has ended the tree

	installing bool // the command must not be ended while it works
	wait       installation

	fence        fence
	after        after
	restrictions restrictions
}

// serve starts a command and returns when the tree has ended. Status 0 promises that
// nothing of it is left; after any other status the parent must check.
func serve(path string, args []string) int {
	syscall.CloseOnExec(ordersFile)
	syscall.CloseOnExec(eventsFile)
	setName(Name) // otherwise ps shows "exe"
	g := &guard{signals: make(chan os.Signal, 16)}
	// Caught, not ignored: the command would inherit ignored signals. It does inherit
	// signals that were ignored before, as under nohup.
	signal.Notify(g.signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGQUIT)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(g.signals, s)
		}
	}
	err := g.inherit(os.Args[0][len(Name):])
	if err == nil && g.fence.over() {
		tell(EventFenced, 0)
		return 0
	}
	if err == nil {
		err = g.start(path, args)
	}
	if err != nil {
		errno, _ := err.(syscall.Errno)
		tell(EventFailed, int(errno))
		return 1
	}
	if detachStdio() != nil {
		return 1
	}
	g.orders = receive()
	g.fence.watch()
	gone := g.watch()
	if g.orders == nil || g.fenced {
		g.after.run()
	}
	if !gone {
		return 1
	}
	return 0
}

// inherit takes the files that the suffixes of the name list.
func (g *guard) inherit(rest string) error {
	fd := firstFile
	has := func(suffix string) bool {
		if len(rest) < len(suffix) || rest[:len(suffix)] != suffix {
			return false
		}
		rest = rest[len(suffix):]
		fd++
		return true
	}
	if has(Fenced) {
		if err := g.fence.open(fd - 1); err != nil {
			return err
		}
	}
	if has(After) {
		if err := g.after.open(fd - 1); err != nil {
			return err
		}
	}
	if rest != "" { // a sandbox: a file that a host left open would bypass it
		if err := closeAllOnExec(); err != nil {
			return err
		}
	}
	if has(Landlock) {
		g.restrictions.ruleset = fd - 1
	}
	if has(Seccomp) {
		filter, err := readAll(fd - 1)
		if err != nil {
			return err
		}
		if len(filter) == 0 {
			return syscall.ECANCELED // the sandbox could not be made, or the parent is gone
		}
		if len(filter) > 1 { // one byte means that this system has none
			g.restrictions.filter = filter
		}
	}
	if has(Notify) {
		g.restrictions.listener = fd - 1
	}
	return nil
}

// start starts the command and reports it.
func (g *guard) start(path string, args []string) error {
	environment, err := readFile("/proc/self/environ") // os.Environ has each name once
	if err != nil {
		return err
	}
	if err := setSubreaper(); err != nil {
		return err
	}
	g.after.environment = split(environment, 0)[1:]
	attr := &syscall.ProcAttr{
		Env:   g.after.environment,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	return g.restrictions.within(func() (err error) {
		if g.command, err = syscall.ForkExec(path, args, attr); err == nil {
			tell(EventStarted, g.command)
		}
		return err
	})
}

// detachStdio closes the guard's copies of the command's streams: when the command
// closes one, its peer must notice.
func detachStdio() error {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := syscall.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	return syscall.Close(null)
}

// receive returns the orders as they arrive; the channel is closed when the parent
// is gone.
func receive() <-chan byte {
	orders := make(chan byte)
	go func() {
		defer close(orders)
		one := make([]byte, 1)
		for {
			if n, err := again(func() (int, error) { return syscall.Read(ordersFile, one) }); n <= 0 || err != nil {
				return
			}
			orders <- one[0]
		}
	}()
	return orders
}

// watch returns when nothing of the tree is left, or false if a part of it could not be
// killed.
func (g *guard) watch() bool {
	for {
		select {
		case s := <-g.signals:
			if s != syscall.SIGCHLD {
				g.end()
			} else if !g.reap() {
				return true
			}
		case order, ok := <-g.orders:
			g.obey(order, ok)
		case <-g.fence.passed:
			g.fence.passed, g.fenced = nil, true
			tell(EventFenced, 0)
			g.sweepIn(0)
		case <-g.wait.look:
			if g.command == 0 || !g.installing || g.wait.done(g.command) {
				g.endNow()
			}
		case now := <-g.sweep:
			if now.After(g.giveUp) {
				return false
			}
			g.signal(syscall.SIGKILL)
			g.pause = min(2*g.pause, 50*time.Millisecond)
			g.sweep = time.After(g.pause)
		}
	}
}

func (g *guard) obey(order byte, ok bool) {
	switch {
	case !ok:
		g.orders = nil
		g.end()
	case order == OrderEnd:
		g.end()
	case order == OrderKill:
		g.sweepIn(0)
	case order == OrderReap:
		g.after.words = nil
	case order == OrderInstalling, order == OrderInstalled:
		g.installing = order == OrderInstalling
	case order == OrderTerminate && g.command != 0:
		_ = syscall.Kill(-g.command, syscall.SIGTERM)
	}
}

// end ends the tree, at once or when a command that installs is done.
func (g *guard) end() {
	switch {
	case !g.installing || g.command == 0:
		g.endNow()
	case g.wait.look == nil && g.sweep == nil:
		g.wait.begin(g.command)
	}
}

// endNow asks the rest of the tree to end, and kills it after a grace period.
func (g *guard) endNow() {
	g.wait.look = nil
	if g.sweep == nil {
		g.signal(syscall.SIGTERM)
		g.sweepIn(Grace)
	}
}

// sweepIn schedules the first of many sweeps: each kills one generation, whose children
// then become ours, and a fork may outrun a sweep. Only processes that run as another user or
// hang in the kernel survive to the end.
func (g *guard) sweepIn(d time.Duration) {
	g.pause = time.Millisecond
	g.sweep = time.After(d)
	g.giveUp = time.Now().Add(d + 5*time.Second)
}

// signal sends sig to the command's group, and to all children: the command and
// the orphans of the tree.
func (g *guard) signal(sig syscall.Signal) {
	if g.command != 0 {
		_ = syscall.Kill(-g.command, sig)
	}
	orphans, _ := Children() // the next sweep finds those that could not be read
	for _, p := range orphans {
		_ = syscall.Kill(p.Pid, sig)
	}
}

// reap reaps the children that ended and reports whether any are left. /proc is read only
// if the command leaves some: most leave none, and it costs 2.5 ms.
func (g *guard) reap() bool {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false
		case pid == 0:
			if g.command == 0 {
				g.end()
			}
			return true
		case pid == g.command:
			g.command = 0
			tell(EventEnded, int(status))
		}
	}
}

// tell writes an event. A parent that no longer reads has also closed the orders.
func tell(event string, n int) {
	_, _ = syscall.Write(eventsFile, []byte(event+" "+strconv.Itoa(n)+"\n"))
}
