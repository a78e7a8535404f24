package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// argv0 is the name under which this program is a guard:
// argv0, the command's path, and its arguments from the zeroth on.
const argv0 = "dynmcp-guard"

// What the guard is told, and what it tells: lines of a name and a number.
const (
	orderTerminate = 'T'
	orderKill      = 'K'

	eventStarted = "started" // pid
	eventFailed  = "failed"  // errno
	eventEnded   = "ended"   // wait status
)

// The files that a guard is given.
const (
	ordersFile = 3
	eventsFile = 4
)

// A guard must be up before the command it guards, so it is entered before the
// packages of the program proper are initialised.
func init() {
	if len(os.Args) >= 3 && os.Args[0] == argv0 {
		// os.Exit would sleep for a second where the race detector is built in.
		syscall.Exit(serve(os.Args[1], os.Args[2:]))
	}
}

// A warden is what a guard knows. One goroutine does all of its work: while it
// looks at a child nobody reaps it, so that no number means someone else.
type warden struct {
	leader  int // the command, 0 when it has ended
	events  *os.File
	orders  <-chan byte
	signals chan os.Signal
	sweep   <-chan time.Time // when to kill what is left; nil while there is no need
	pause   time.Duration    // until the sweep after that
	giveUp  time.Time        // what cannot be killed by then stays
}

// serve starts a command and returns when nothing of it is left.
func serve(path string, args []string) int {
	runtime.LockOSThread() // PDEATHSIG is sent when the thread that forked ends
	syscall.CloseOnExec(ordersFile)
	syscall.CloseOnExec(eventsFile)
	w := &warden{events: os.NewFile(eventsFile, "events"), signals: make(chan os.Signal, 16)}
	// Caught and not ignored: what is ignored the command would inherit.
	signal.Notify(w.signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	_ = os.WriteFile("/proc/self/comm", []byte(argv0), 0) // else ps calls it "exe"
	if err := w.start(path, args); err != nil {
		errno, _ := err.(syscall.Errno)
		w.tell(eventFailed, int(errno))
		return 1
	}
	w.tell(eventStarted, w.leader)
	w.orders = receive(os.NewFile(ordersFile, "orders"))
	w.watch()
	return 0
}

func (w *warden) start(path string, args []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	w.leader = pid
	return letGo()
}

// letGo closes our ends of the command's pipes: when it closes one, that must
// be seen.
func letGo() error {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	return syscall.Close(null)
}

// receive returns the orders that come; the channel is closed when whoever
// gives them is gone.
func receive(f *os.File) <-chan byte {
	orders := make(chan byte)
	go func() {
		defer close(orders)
		one := make([]byte, 1)
		for {
			if n, err := f.Read(one); n == 0 || err != nil {
				return
			}
			orders <- one[0]
		}
	}()
	return orders
}

// watch keeps the tree until nothing is left of it.
func (w *warden) watch() {
	for {
		select {
		case s := <-w.signals:
			if s != syscall.SIGCHLD {
				w.end()
			} else if !w.reap() {
				return
			}
		case order, ok := <-w.orders:
			w.obey(order, ok)
		case now := <-w.sweep:
			if now.After(w.giveUp) {
				return
			}
			w.signal(syscall.SIGKILL)
			w.pause = min(2*w.pause, 50*time.Millisecond)
			w.sweep = time.After(w.pause)
		}
	}
}

func (w *warden) obey(order byte, ok bool) {
	switch {
	case !ok:
		w.orders = nil
		w.end()
	case order == orderKill:
		w.sweepIn(0)
	case order == orderTerminate && w.leader != 0:
		_ = syscall.Kill(-w.leader, syscall.SIGTERM)
	}
}

// end asks what is left of the tree to end, and kills what does not.
func (w *warden) end() {
	if w.sweep == nil {
		w.signal(syscall.SIGTERM)
		w.sweepIn(grace)
	}
}

// sweepIn begins to kill, again and again: a killed parent leaves its children
// to us, one generation with every round, and a fork may outrun a round. Only
// what runs as another user, or hangs in the kernel, is still there at the end.
func (w *warden) sweepIn(d time.Duration) {
	w.pause = time.Millisecond
	w.sweep = time.After(d)
	w.giveUp = time.Now().Add(d + 5*time.Second)
}

// signal reaches the command's group, while that is the command's, and all
// that has become our child.
func (w *warden) signal(sig syscall.Signal) {
	if w.leader != 0 {
		_ = syscall.Kill(-w.leader, sig)
	}
	for _, pid := range children() {
		_ = syscall.Kill(pid, sig)
	}
}

// reap takes note of the children that ended; false when none is left.
func (w *warden) reap() bool {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == w.leader:
			w.leader = 0
			w.tell(eventEnded, int(status))
			w.end()
		}
	}
}

func (w *warden) tell(event string, n int) { fmt.Fprintf(w.events, "%s %d\n", event, n) }

// children returns the processes whose parent we are. The kernel's own list,
// /proc/PID/task/TID/children, is not built into every kernel.
func children() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && parent(name) == os.Getpid() {
			all = append(all, pid)
		}
	}
	return all
}

// parent reads the second field after the command's name, which stands in
// parentheses and may hold any byte.
func parent(pid string) int {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[1]))
	return n
}
