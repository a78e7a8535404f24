package box_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
)

// An attempt is an action of a hostile server. It must be possible without restrictions, or the test
// proves nothing, and be refused within them.
type attempt struct {
	name    string
	try     func(args []string) error
	args    func(w *world) []string
	network sandbox.Network
	names   bool // the entry names w.named
}

// A world holds the targets of attacks.
type world struct {
	t        *testing.T
	home     string
	secret   string // a file in home
	work     string // the server's own directory
	temp     string // the directory that it may write
	other    string // the temporary directory of another server
	victim   int    // a process with a secret in its environment
	port     int    // of another server, on loopback
	six      int    // the same over IPv6, or 0
	udp      int
	proxy    int // the port that it may connect to
	socket   string
	datagram string // takes datagrams
	named    string // a socket that an entry names
	abstract string
	terminal string
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

func pair(kind int) func([]string) error {
	return func([]string) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err == nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
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

var attempts = slices.Concat(fileAttempts, processAttempts, networkAttempts, datagramAttempts())

// needs are actions that must be possible under the restrictions.
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
	{name: "connect to the proxy", try: dial("tcp"), args: func(w *world) []string { return []string{"127.0.0.1:" + strconv.Itoa(w.proxy)} }, network: sandbox.OnlyByProxy},
	{name: "a pair of sockets without a network", try: pair(unix.SOCK_STREAM | unix.SOCK_CLOEXEC), args: nothing, network: sandbox.NoNetwork},
	{name: "a pair of packet sockets", try: pair(unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK), args: nothing},
	{name: "connect to a socket of its entry", try: dial("unix"), args: func(w *world) []string { return []string{w.named} }, names: true},
	{name: "connect to a socket of its entry, with a list of hosts", try: dial("unix"), args: func(w *world) []string { return []string{w.named} }, names: true, network: sandbox.OnlyByProxy},
}

// tryVariable makes this program make an attempt and exit with its result.
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
	for _, a := range append(append(attempts, needs...), oldKernel, deepTree) {
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

// run makes an attempt, under restrictions unless they are nil, and returns its status and output.
func (a attempt) run(w *world, args []string, restrictions *guard.Restrictions) (status int, output string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := os.CreateTemp(w.t.TempDir(), "output")
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), tryVariable+"="+a.name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, out, out
	tree, err := guard.Start(cmd, nil, restrictions)
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
	w.port = w.listen("tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		w.six = w.listen("tcp", "[::1]:0").(*net.TCPAddr).Port
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	w.udp = udp.LocalAddr().(*net.UDPAddr).Port
	w.socket = filepath.Join(w.home, "bus")
	w.listen("unix", w.socket)
	w.named = filepath.Join(w.home, "named")
	w.listen("unix", w.named)
	w.datagram = filepath.Join(w.home, "log")
	logs, err := net.ListenPacket("unixgram", w.datagram)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { logs.Close() })
	go func() { _, _ = io.Copy(io.Discard, logs.(*net.UnixConn)) }() // a full queue blocks its senders
	w.abstract = "@dynmcp-sandbox-" + strconv.Itoa(os.Getpid())
	w.listen("unix", w.abstract)
	w.terminal = terminal(t)
	if err := copyProgram("id", filepath.Join(w.work, "id")); err != nil {
		t.Fatal(err)
	}
	return w
}

// listen accepts connections until the test ends.
func (w *world) listen(network, address string) net.Addr {
	w.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		w.t.Skipf("not here: %v", err)
	}
	w.t.Cleanup(func() { l.Close() })
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

// terminal returns the path of a new terminal.
func terminal(t *testing.T) string {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return "/dev/pts/" + strconv.Itoa(n)
}

// copyProgram copies a program. As root, it makes the copy setuid nobody.
func copyProgram(name, to string) error {
	from, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, program, 0o755); err != nil || os.Getuid() != 0 {
		return err
	}
	return errors.Join(os.Chown(to, nobody, nobody), os.Chmod(to, 0o755|os.ModeSetuid))
}

func ready(filter []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return filter, nil }
}

// box makes the sandbox for an attempt.
func (a attempt) box(w *world) *box.Sandbox {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	server := box.Server{
		Name: "hostile", Program: self, Dir: w.work, DirSet: true, Env: []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")},
		Write: []string{w.temp}, Network: a.network, Hosts: []string{"api.example.com"},
	}
	if a.names {
		server.Write = append(server.Write, w.named)
	}
	box, err := box.New(server, slog.New(slog.DiscardHandler), func(string) {})
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		w.t.Fatalf("this kernel is too old for this test: %v", missing)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := box.Close(); err != nil {
			w.t.Error(err)
		}
	})
	for _, entry := range box.Env() {
		if address, ok := strings.CutPrefix(entry, "HTTPS_PROXY="); ok {
			w.proxy, err = strconv.Atoi(address[strings.LastIndexByte(address, ':')+1:])
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return box
}

func TestAttempts(t *testing.T) {
	w := newWorld(t)
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			within := *w
			within.t = t
			box := a.box(&within)
			args := a.args(&within)
			if status, output := a.run(&within, args, nil); status != possible {
				if excused(a.name, output) {
					t.Skipf("not possible here without restrictions either: %s", output)
				}
				t.Fatalf("not possible without restrictions: %d %s", status, output)
			}
			if status, output := a.run(&within, args, box.Restrictions()); status != refused {
				t.Errorf("got %d under the restrictions: %s", status, output)
			}
		})
	}
}

// excused reports whether an attempt failed because the machine lacks or forbids it by itself.
func excused(name, output string) bool {
	lacking := map[string][]string{
		"IPv6 around the proxy":                       {"missing port", "refused", "cannot assign", "invalid"},
		"IPv6 without a network":                      {syscall.EAFNOSUPPORT.Error()},
		"send packets of its own making":              {syscall.EPERM.Error()},
		"a raw socket around the proxy":               {syscall.EPERM.Error()},
		"mount":                                       {syscall.EPERM.Error(), syscall.EACCES.Error()},
		"mount in a namespace of its own":             {"unshare"},
		"leave for another namespace":                 {syscall.EPERM.Error()},
		"use another capability of root":              {"permitted", "not found"},
		"become another user by a program":            {"it is user"},
		"trace a process":                             {syscall.EPERM.Error()},
		"trace dynmcp":                                {syscall.EPERM.Error()}, // where ptrace_scope is 1
		"trace our guard":                             {syscall.EPERM.Error()},
		"take a file of dynmcp":                       {syscall.EPERM.Error()},
		"read the memory of dynmcp":                   {syscall.EACCES.Error()},
		"read the memory of our guard":                {syscall.EACCES.Error()},
		"read the memory of a process by a call":      {syscall.EPERM.Error()},
		"watch the shadow passwords":                  {syscall.EACCES.Error(), "no such file"},
		"read a key by a file handle":                 {syscall.EPERM.Error(), syscall.EOPNOTSUPP.Error()},
		"read a key in a namespace of its own":        {"fork/exec"},
		"load a program into the kernel":              {syscall.EPERM.Error()},
		"watch the events of the machine":             {syscall.EACCES.Error(), syscall.EPERM.Error(), syscall.ENOENT.Error(), syscall.ENOSYS.Error()},
		"handle page faults":                          {syscall.EPERM.Error(), syscall.ENOSYS.Error()},
		"keep a key in the kernel":                    {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"ask the kernel for a key":                    {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"MPTCP around the proxy":                      {syscall.EPROTONOSUPPORT.Error(), syscall.ENOPROTOOPT.Error(), "protocol not"},
		"SCTP or UDP-Lite around the proxy":           {syscall.EPROTONOSUPPORT.Error()},
		"work handed to the kernel around the filter": {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"another port from a child":                   {"bash"},
		"watch a file system":                         {syscall.ENOSYS.Error(), syscall.EPERM.Error()},
		"read an attribute of a key":                  {syscall.EOPNOTSUPP.Error()},
		"set an attribute of a key":                   {syscall.EOPNOTSUPP.Error()},
	}
	for _, text := range lacking[name] {
		if strings.Contains(output, text) {
			return true
		}
	}
	return false
}

// oldKernel runs under a filter that hides Landlock, as on an old kernel.
var oldKernel = attempt{name: "build without Landlock", try: func([]string) error {
	_, err := sandbox.Build(sandbox.Policy{Read: []string{"/usr"}})
	missing, ok := errors.AsType[*sandbox.MissingError](err)
	if !ok || !strings.Contains(missing.Error(), "files (the kernel has no Landlock") || !strings.Contains(missing.Error(), "best_effort") {
		return fmt.Errorf("without best_effort: got %v", err)
	}
	restrictions, err := sandbox.Build(sandbox.Policy{Read: []string{"/usr"}, BestEffort: true})
	if err != nil || len(restrictions.Missing) == 0 || len(restrictions.Filter) == 0 || restrictions.Ruleset != nil {
		return fmt.Errorf("with best_effort: got %+v, %v", restrictions, err)
	}
	if got := (sandbox.Policy{}).Missing(); len(got) == 0 {
		return errors.New("nothing is said to be missing")
	}
	return nil
}, args: nothing}

func TestOldKernel(t *testing.T) {
	filter, err := noLandlock()
	if err != nil {
		t.Fatal(err)
	}
	if status, output := oldKernel.run(newWorld(t), nil, &guard.Restrictions{Filter: ready(filter)}); status != possible {
		t.Errorf("got %d: %s", status, output)
	}
}

// deepTree removes the sandbox of a server that has made a tree which is deeper than there are
// descriptors.
var deepTree = attempt{name: "remove a deep tree", try: func(a []string) error {
	box, err := box.New(box.Server{Name: "deep", Env: []string{"HOME=" + a[0]}}, slog.New(slog.DiscardHandler), func(string) {})
	if err != nil {
		return err
	}
	if _, err := box.Restrictions().Filter(); err != nil {
		return err
	}
	dir, err := unix.Open(box.Temp, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for range 1000 {
		below := -1
		err := errors.Join(unix.Symlinkat(a[0], dir, "home"), unix.Mknodat(dir, "file", unix.S_IFREG|0o600, 0), unix.Mkdirat(dir, "deeper", 0o700))
		if err == nil {
			below, err = unix.Openat(dir, "deeper", unix.O_DIRECTORY, 0)
		}
		if err := errors.Join(err, unix.Fchmod(dir, 0), unix.Close(dir)); err != nil {
			return err
		}
		dir = below
	}
	unix.Close(dir)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}); err != nil {
		return err
	}
	if err := box.Close(); err != nil {
		return err
	}
	if _, err := os.Stat(box.Temp); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("it is left: %v", err)
	}
	return read([]string{filepath.Join(a[0], "id_rsa")})
}, args: nothing}

func TestDeepTree(t *testing.T) {
	w := newWorld(t)
	if status, output := deepTree.run(w, []string{w.home}, nil); status != possible {
		t.Errorf("got %d: %.300s", status, output)
	}
}

func TestNeeds(t *testing.T) {
	w := newWorld(t)
	for _, a := range needs {
		t.Run(a.name, func(t *testing.T) {
			within := *w
			within.t = t
			box := a.box(&within)
			if status, output := a.run(&within, a.args(&within), box.Restrictions()); status != possible {
				t.Errorf("got %d under the restrictions: %s", status, output)
			}
		})
	}
}

// New makes the missing directories that a runner installs into.
func TestRunnerInANewHome(t *testing.T) {
	home := t.TempDir()
	server := box.Server{Name: "new", Dir: t.TempDir(), Env: []string{"HOME=" + home}, Runner: "npx", Package: "a@1"}
	box, err := box.New(server, slog.New(slog.DiscardHandler), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{".npm/_cacache", ".npm/_logs"} {
		if info, err := os.Stat(filepath.Join(home, dir)); err != nil || !info.IsDir() {
			t.Error(err)
		}
	}
}
