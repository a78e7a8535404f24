package guard_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// roles are what this binary does instead of testing if its environment names one: tests that
// kill or starve a process run this binary again.
var roles = map[string]func(){}

const roleVariable = "GUARD_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		role()
		return
	}
	// A guard ignores the signals that we ignore, as under nohup, but tests send it these. A
	// signal that is caught is not ignored by children.
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	mcptest.Main(m)
}

// command returns a command whose streams are the null device.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return &exec.Cmd{Path: path, Args: args, Stdin: null, Stdout: null, Stderr: null}
}

func start(t *testing.T, args ...string) *guard.Tree {
	t.Helper()
	tree, err := guard.Start(command(t, args...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestHowACommandEnded(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":            "it exited with status 0",
		"exit 3":            "it exited with status 3",
		"kill -9 $$":        "it was ended by a signal: killed",
		"kill -ABRT $$":     "it was ended by a signal: aborted",
		"exec 1>&-; exit 0": "it exited with status 0",
	} {
		tree := start(t, "sh", "-c", script)
		err := tree.Wait()
		tree.Reap()
		if got, _, _ := strings.Cut(err.Error(), " (core"); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}

func TestACommandThatCannotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not-a-program")
	if err := os.WriteFile(path, []byte{0, 1, 2, 3}, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := guard.Start(&exec.Cmd{Path: path, Args: []string{path}}, nil, nil)
	if err == nil {
		t.Fatal("it started")
	}
	if runtime.GOOS == "linux" && err != syscall.ENOEXEC {
		t.Errorf("got %v, want %v", err, syscall.ENOEXEC)
	}
	if errors.Is(err, guard.ErrResources) {
		t.Errorf("%v: counted as a lack of resources", err)
	}
}

func TestADirectoryThatIsMissing(t *testing.T) {
	cmd := command(t, "sh", "-c", "exit 0")
	cmd.Dir = filepath.Join(t.TempDir(), "missing")
	_, err := guard.Start(cmd, nil, nil)
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, guard.ErrResources) {
		t.Errorf("got %v, want one that says the directory is missing", err)
	}
}

func TestWhatIsALackOfResources(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other errors there")
	}
	for err, want := range map[error]bool{
		syscall.EMFILE: true,
		syscall.ENFILE: true,
		syscall.ENOMEM: true,
		&fs.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: syscall.EAGAIN}: true,
		os.NewSyscallError("pipe2", syscall.EMFILE):                                 true,
		syscall.E2BIG:             false,
		fs.ErrNotExist:            false,
		errors.New("EMFILE, but"): false,
	} {
		marked := guard.MarkResources(err)
		if got := errors.Is(marked, guard.ErrResources); got != want {
			t.Errorf("%v: got %t, want %t", err, got, want)
		}
		if !errors.Is(marked, err) || !strings.HasSuffix(marked.Error(), err.Error()) {
			t.Errorf("%v became %v", err, marked)
		}
	}
	if err := guard.MarkResources(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
