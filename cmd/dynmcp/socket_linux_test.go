package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// asNobody runs f as another user, on a thread of its own.
func asNobody(f func() error) error {
	const nobody = 65534
	done := make(chan error)
	go func() { // the thread ends with it
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		done <- f()
	}()
	return <-done
}

// The user at the other end of a socket is checked even if the file is open to all, by the
// run and by connect.
func TestAnotherUserIsNotServed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	t.Parallel()
	socket := socketPath(t)
	p := serveOn(t, socket, mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")})))
	for path, mode := range map[string]os.FileMode{filepath.Dir(socket): 0o777, socket: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	err := asNobody(func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
			return err
		}
		n, err := unix.Read(fd, make([]byte, 100))
		if n > 0 {
			return fmt.Errorf("%d bytes were sent to it", n)
		}
		return err
	})
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	p.WaitStderr("the other end of the socket belongs to another user (uid 65534)")
	dial(t, socket).Initialize(handshake, nil)

	theirs := filepath.Join(filepath.Dir(socket), "theirs")
	var fd int
	err = asNobody(func() (err error) {
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
			if err = unix.Bind(fd, &unix.SockaddrUnix{Name: theirs}); err == nil {
				err = unix.Listen(fd, 5)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	contains(t, fails(t, mcptest.HostOptions{Args: []string{"connect", "--socket", theirs, "-c", "none.json"}}), "belongs to another user (uid 65534)")
}

// Hosts that share a run have one process of each server, and cost little themselves.
func TestProcessesOfHostsThatShare(t *testing.T) {
	t.Parallel()
	var servers []entry
	for i := range 10 {
		servers = append(servers, fake(t, fmt.Sprintf("s%d", i)))
	}
	shared := newSharing(t, servers...)
	var hosts []*mcptest.Host
	for range 5 {
		host := shared.greet(nil)
		host.Call("tools/list", nil)
		hosts = append(hosts, host)
	}
	for _, s := range servers {
		for i, host := range hosts {
			if got, want := use(host, s.name+"/echo", fmt.Sprintf(`{"n":%d}`, i)).Text(), fmt.Sprintf(`{"n":%d}`, i); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if got := s.Count("start"); got != 1 {
			t.Errorf("%s was started %d times", s.name, got)
		}
	}
	var all int
	for _, host := range hosts {
		all += len(mcptest.Processes(host.Marker()))
	}
	if want := 5 + 1 + 2*len(servers); all != want { // a guard stands before each server
		t.Errorf("there are %d processes, want %d", all, want)
	}
}

// Some hosts end all descendants of a server when they leave. A shared run is not a
// descendant.
func TestRunThatIsSharedIsNoDescendantOfItsHost(t *testing.T) {
	t.Parallel()
	shared := newSharing(t, fake(t, "alpha"))
	host := shared.greet(nil)
	for pid := shared.pid(); pid > 1; {
		if pid == host.Pid() {
			t.Fatal("the run is a descendant of its host")
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, parent, _ := strings.Cut(string(status), "\nPPid:")
		if _, err := fmt.Sscan(parent, &pid); err != nil {
			t.Fatal(err)
		}
	}
}
