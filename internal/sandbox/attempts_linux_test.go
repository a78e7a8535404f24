package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// An attempt is what a hostile server tries. It is possible without walls, or the test
// could not fail, and refused within them.
type attempt struct {
	name  string
	try   func(args []string) error
	args  func(w *world) []string
	walls func(w *world) sandbox.Policy // nil: files alone, all of the network
}

// A world is what there is to be attacked.
type world struct {
	t        *testing.T
	home     string
	secret   string // a file in home
	work     string // the server's own directory
	temp     string // what it may write
	other    string // the temporary directory of another server
	victim   int    // a process with a secret in its environment
	port     int    // of another server, on loopback
	six      int    // the same over IPv6, 0 where there is none
	udp      int
	proxy    int // the port that it may connect to
	socket   string
	abstract string
}

func (w *world) policy() sandbox.Policy {
	self, _ := os.Executable()
	read := append(sandbox.System(), filepath.Dir(self), w.work)
	return sandbox.Policy{Read: read, Write: append(sandbox.Devices(), w.temp)}
}

func offline(w *world) sandbox.Policy {
	p := w.policy()
	p.Network = sandbox.NoNetwork
	return p
}

func byProxy(w *world) sandbox.Policy {
	p := w.policy()
	p.Network, p.Proxy = sandbox.OnlyByProxy, uint16(w.proxy)
	return p
}

func read(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadAll(io.LimitReader(f, 1))
	return err
}

func shell(args []string) error {
	out, err := exec.Command("sh", "-c", args[0]).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func dial(network string) func([]string) error {
	return func(args []string) error {
		conn, err := net.DialTimeout(network, args[0], 5*time.Second)
		if err == nil {
			conn.Close()
		}
		return err
	}
}

func socket(family, kind, protocol int) func([]string) error {
	return func([]string) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func secretOf(w *world) []string { return []string{w.secret} }
func pidOf(w *world) []string    { return []string{strconv.Itoa(w.victim)} }
func nothing(*world) []string    { return nil }
func portOf(w *world) []string   { return []string{"127.0.0.1:" + strconv.Itoa(w.port)} }

func ofPid(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	return pid
}

var attempts = []attempt{
	{name: "read a key", try: read, args: secretOf},
	{name: "list a home directory", try: func(a []string) error { _, err := os.ReadDir(a[0]); return err }, args: func(w *world) []string { return []string{w.home} }},
	{name: "read a key by a symbolic link", try: func(a []string) error {
		link := filepath.Join(a[1], "link")
		os.Remove(link)
		if err := os.Symlink(a[0], link); err != nil {
			return err
		}
		return read([]string{link})
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "read a key by a hard link", try: func(a []string) error {
		link := filepath.Join(a[1], "hard")
		os.Remove(link)
		if err := os.Link(a[0], link); err != nil {
			return err
		}
		return read([]string{link})
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "move a key", try: func(a []string) error {
		if err := os.Rename(a[0], filepath.Join(a[1], "moved")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(a[1], "moved"), a[0])
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "use another capability of root", try: shell, args: func(*world) []string { return []string{"chroot / true"} }},
	{name: "read a key by /proc/self/root", try: read, args: func(w *world) []string { return []string{"/proc/self/root" + w.secret} }},
	{name: "read a key by a relative path", try: func(a []string) error {
		if err := os.Chdir(a[1]); err != nil {
			return err
		}
		return read([]string{a[0]})
	}, args: func(w *world) []string {
		up, _ := filepath.Rel(w.work, w.secret)
		return []string{up, w.work}
	}},
	{name: "read a key from a grandchild", try: shell, args: func(w *world) []string { return []string{"sh -c 'sh -c \"cat " + w.secret + "\"'"} }},
	{name: "read a key from a session of its own", try: shell, args: func(w *world) []string { return []string{"setsid -w cat " + w.secret} }},
	{name: "change a key", try: func(a []string) error { return os.WriteFile(a[0], []byte("key"), 0o600) }, args: secretOf},
	{name: "cut a key short", try: func(a []string) error { return os.Truncate(a[0], 3) }, args: secretOf},
	{name: "make a file in a home directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], ".bashrc"), nil, 0o600) }, args: func(w *world) []string { return []string{w.home} }},
	{name: "change its own directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], "x"), nil, 0o600) }, args: func(w *world) []string { return []string{w.work} }},
	{name: "read another server's temporary directory", try: func(a []string) error { _, err := os.ReadDir(a[0]); return err }, args: func(w *world) []string { return []string{w.other} }},
	{name: "write into another server's temporary directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], "x"), nil, 0o600) }, args: func(w *world) []string { return []string{w.other} }},
	{name: "open a fifo", try: func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: func(w *world) []string {
		fifo := filepath.Join(w.home, "fifo")
		_ = unix.Mkfifo(fifo, 0o600)
		return []string{fifo}
	}},
	{name: "run a program from a home directory", try: func(a []string) error { return exec.Command(a[0]).Run() }, args: func(w *world) []string {
		program := filepath.Join(w.home, "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			w.t.Fatal(err)
		}
		return []string{program}
	}},
	{name: "watch the shadow passwords", try: read, args: func(*world) []string { return []string{"/etc/shadow"} }},

	{name: "read the environment of a process", try: func(a []string) error { return read([]string{"/proc/" + a[0] + "/environ"}) }, args: pidOf},
	{name: "read the memory of a process", try: func(a []string) error {
		fd, err := unix.Open("/proc/"+a[0]+"/mem", unix.O_RDONLY, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: pidOf},
	{name: "follow the files of a process", try: func(a []string) error { _, err := os.Readlink("/proc/" + a[0] + "/fd/0"); return err }, args: pidOf},
	{name: "trace a process", try: func(a []string) error {
		if err := unix.PtraceAttach(ofPid(a)); err != nil {
			return err
		}
		var status unix.WaitStatus
		_, _ = unix.Wait4(ofPid(a), &status, unix.WALL, nil)
		return unix.PtraceDetach(ofPid(a))
	}, args: pidOf},
	{name: "read the memory of a process by a call", try: func(a []string) error {
		_, err := unix.ProcessVMReadv(ofPid(a), nil, nil, 0)
		return err
	}, args: pidOf},
	{name: "stop a process", try: func(a []string) error { return unix.Kill(ofPid(a), unix.SIGCONT) }, args: pidOf},
	{name: "stop our parent", try: func([]string) error { return unix.Kill(os.Getppid(), unix.SIGCONT) }, args: nothing},
	{name: "stop our parent by one of its threads", try: func([]string) error { // one of them started us, and is within the walls
		self, parent := os.Getpid(), os.Getppid()
		for id := parent; id < parent+200; id++ {
			if unix.Tgkill(self, id, 0) == nil {
				continue // one of ours
			}
			fd, _, errno := unix.Syscall(unix.SYS_PIDFD_OPEN, uintptr(id), unix.O_EXCL /* PIDFD_THREAD */, 0)
			if errno == 0 {
				err := unix.PidfdSendSignal(int(fd), 0, nil, 0)
				unix.Close(int(fd))
				if err == nil {
					return nil
				}
			}
			if unix.Tgkill(parent, id, 0) == nil || unix.Kill(id, 0) == nil {
				return nil
			}
		}
		return unix.EPERM
	}, args: nothing},
	{name: "mount", try: func(a []string) error {
		err := unix.Mount("none", a[0], "tmpfs", 0, "")
		if err == nil {
			_ = unix.Unmount(a[0], unix.MNT_DETACH)
		}
		return err
	}, args: func(w *world) []string { return []string{w.temp} }},
	{name: "leave for another namespace", try: func(a []string) error {
		f, err := os.Open("/proc/self/ns/ipc")
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWIPC)
	}, args: nothing},
	{name: "ask the kernel for a key", try: func([]string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
		return err
	}, args: nothing},
	{name: "connect to a socket that is a file", try: dial("unix"), args: func(w *world) []string { return []string{w.socket} }},
	{name: "connect to an abstract socket", try: dial("unix"), args: func(w *world) []string { return []string{w.abstract} }},
	{name: "send packets of its own making", try: socket(unix.AF_PACKET, unix.SOCK_RAW, 0), args: nothing},

	{name: "TCP without a network", try: dial("tcp"), args: portOf, walls: offline},
	{name: "UDP without a network", try: socket(unix.AF_INET, unix.SOCK_DGRAM, 0), args: nothing, walls: offline},
	{name: "IPv6 without a network", try: socket(unix.AF_INET6, unix.SOCK_STREAM, 0), args: nothing, walls: offline},
	{name: "listen without a network", try: func([]string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			l.Close()
		}
		return err
	}, args: nothing, walls: offline},
	{name: "interfaces without a network", try: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), args: nothing, walls: offline},

	{name: "another port than the proxy's", try: dial("tcp"), args: portOf, walls: byProxy},
	{name: "another port from a child", try: shell, args: func(w *world) []string {
		return []string{"exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + strconv.Itoa(w.port) + "'"}
	}, walls: byProxy},
	{name: "IPv6 around the proxy", try: dial("tcp"), args: func(w *world) []string { return []string{"[::1]:" + strconv.Itoa(w.six)} }, walls: byProxy},
	{name: "UDP around the proxy", try: dial("udp"), args: func(w *world) []string { return []string{"127.0.0.1:" + strconv.Itoa(w.udp)} }, walls: byProxy},
	{name: "DNS around the proxy", try: socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP), args: nothing, walls: byProxy},
	{name: "a raw socket around the proxy", try: socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), args: nothing, walls: byProxy},
	{name: "MPTCP around the proxy", try: socket(unix.AF_INET, unix.SOCK_STREAM, 262), args: nothing, walls: byProxy},
	{name: "SCTP or UDP-Lite around the proxy", try: socket(unix.AF_INET, unix.SOCK_DGRAM, 136), args: nothing, walls: byProxy},
	{name: "work handed to the kernel around the filter", try: func([]string) error {
		var params [128]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(ptr(&params)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	}, args: nothing, walls: byProxy},
}

// What a server needs is possible within the walls.
var needs = []attempt{
	{name: "read its own directory", try: func(a []string) error { _, err := os.ReadDir(a[0]); return err }, args: func(w *world) []string { return []string{w.work} }},
	{name: "write its temporary directory", try: func(a []string) error {
		if err := os.WriteFile(filepath.Join(a[0], "a"), []byte("x"), 0o600); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(a[0], "d"), 0o700); err != nil {
			return err
		}
		return os.Rename(filepath.Join(a[0], "a"), filepath.Join(a[0], "d", "b"))
	}, args: func(w *world) []string { return []string{w.temp} }},
	{name: "run a shell that writes to /dev/null", try: shell, args: func(*world) []string { return []string{"ls /usr > /dev/null"} }},
	{name: "signal its own child", try: func([]string) error {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
		_ = cmd.Wait()
		return nil
	}, args: nothing},
	{name: "connect over TCP", try: dial("tcp"), args: portOf},
	{name: "connect to the proxy", try: dial("tcp"), args: func(w *world) []string { return []string{"127.0.0.1:" + strconv.Itoa(w.proxy)} }, walls: byProxy},
	{name: "a pair of sockets without a network", try: func([]string) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
		}
		return err
	}, args: nothing, walls: offline},
}

// tryVariable has this program make an attempt, and say so by its status.
const tryVariable = "SANDBOX_TRY"

const (
	possible = 0
	refused  = 77
)

func TestMain(m *testing.M) {
	name := os.Getenv(tryVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	for _, a := range append(append(attempts, needs...), oldKernel) {
		if a.name == name {
			if err := a.try(os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(refused)
			}
			os.Exit(possible)
		}
	}
	os.Exit(1)
}

// run makes an attempt, within walls unless they are nil, and returns its status and what
// it printed.
func (a attempt) run(w *world, walls *guard.Walls) (status int, said string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := os.CreateTemp(w.t.TempDir(), "said")
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command(self, a.args(w)...)
	cmd.Env = append(os.Environ(), tryVariable+"="+a.name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, out, out
	tree, err := guard.Start(cmd, nil, walls)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := tree.Wait()
	tree.Reap()
	text, _ := os.ReadFile(out.Name())
	switch {
	case strings.Contains(ended.Error(), "status 0"):
		return possible, string(text)
	case strings.Contains(ended.Error(), "status 77"):
		return refused, string(text)
	}
	return -1, ended.Error() + ": " + string(text)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, home: t.TempDir(), work: t.TempDir(), temp: t.TempDir(), other: t.TempDir()}
	w.secret = filepath.Join(w.home, "id_rsa")
	if err := os.WriteFile(w.secret, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	w.victim = victim.Process.Pid
	listen := func(network, address string) net.Addr {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		return l.Addr()
	}
	w.port = listen("tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	w.proxy = listen("tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		w.six = listen("tcp", "[::1]:0").(*net.TCPAddr).Port
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	w.udp = udp.LocalAddr().(*net.UDPAddr).Port
	w.socket = filepath.Join(w.home, "bus")
	listen("unix", w.socket)
	w.abstract = "@dynmcp-sandbox-" + strconv.Itoa(os.Getpid())
	listen("unix", w.abstract)
	return w
}

func ready(filter []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return filter, nil }
}

// wallsOf builds the walls for an attempt.
func (a attempt) wallsOf(w *world) *guard.Walls {
	w.t.Helper()
	policy := w.policy()
	if a.walls != nil {
		policy = a.walls(w)
	}
	built, err := sandbox.Build(policy)
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		w.t.Fatalf("this kernel is too old for this test: %v", missing)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { built.Close() })
	return &guard.Walls{Ruleset: built.Ruleset, Filter: ready(built.Filter)}
}

func TestAttempts(t *testing.T) {
	w := newWorld(t)
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			within := *w
			within.t = t
			if status, said := a.run(&within, nil); status != possible {
				if excused(a.name, said) {
					t.Skipf("not possible here without walls either: %s", said)
				}
				t.Fatalf("not possible without walls: %d %s", status, said)
			}
			if status, said := a.run(&within, a.wallsOf(&within)); status != refused {
				t.Errorf("got %d within the walls: %s", status, said)
			}
		})
	}
}

// excused names what machines lack, or forbid by themselves.
func excused(name, said string) bool {
	lacking := map[string][]string{
		"IPv6 around the proxy":                       {"missing port", "refused", "cannot assign", "invalid"},
		"IPv6 without a network":                      {syscall.EAFNOSUPPORT.Error()},
		"send packets of its own making":              {syscall.EPERM.Error()},
		"a raw socket around the proxy":               {syscall.EPERM.Error()},
		"mount":                                       {syscall.EPERM.Error(), syscall.EACCES.Error()},
		"leave for another namespace":                 {syscall.EPERM.Error()},
		"use another capability of root":              {"permitted", "not found"},
		"trace a process":                             {syscall.EPERM.Error()},
		"watch the shadow passwords":                  {syscall.EACCES.Error(), "no such file"},
		"read the memory of a process by a call":      {syscall.EPERM.Error(), syscall.EFAULT.Error()},
		"MPTCP around the proxy":                      {syscall.EPROTONOSUPPORT.Error(), syscall.ENOPROTOOPT.Error(), "protocol not"},
		"SCTP or UDP-Lite around the proxy":           {syscall.EPROTONOSUPPORT.Error()},
		"work handed to the kernel around the filter": {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"ask the kernel for a key":                    {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"another port from a child":                   {"bash"},
	}
	for _, text := range lacking[name] {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// An old kernel is one whose call for Landlock is not there.
var oldKernel = attempt{name: "build without Landlock", try: func([]string) error {
	_, err := sandbox.Build(sandbox.Policy{Read: []string{"/usr"}})
	missing, ok := errors.AsType[*sandbox.MissingError](err)
	if !ok || !strings.Contains(missing.Error(), "files (the kernel has no Landlock") || !strings.Contains(missing.Error(), "best_effort") {
		return fmt.Errorf("without best_effort: got %v", err)
	}
	walls, err := sandbox.Build(sandbox.Policy{Read: []string{"/usr"}, BestEffort: true})
	if err != nil || len(walls.Missing) == 0 || len(walls.Filter) == 0 || walls.Ruleset != nil {
		return fmt.Errorf("with best_effort: got %+v, %v", walls, err)
	}
	if got := (sandbox.Policy{}).Missing(); len(got) == 0 {
		return errors.New("nothing is said to be missing")
	}
	return nil
}, args: nothing}

func TestOldKernel(t *testing.T) {
	filter, err := sandbox.NoLandlock()
	if err != nil {
		t.Fatal(err)
	}
	if status, said := oldKernel.run(newWorld(t), &guard.Walls{Filter: ready(filter)}); status != possible {
		t.Errorf("got %d: %s", status, said)
	}
}

func TestNeeds(t *testing.T) {
	w := newWorld(t)
	for _, a := range needs {
		t.Run(a.name, func(t *testing.T) {
			within := *w
			within.t = t
			if status, said := a.run(&within, a.wallsOf(&within)); status != possible {
				t.Errorf("got %d within the walls: %s", status, said)
			}
		})
	}
}
