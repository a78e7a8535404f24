package guard_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"dynmcp/internal/guard"
	"dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// start starts a command whose processes all carry the marker it returns.
func start(t *testing.T, args ...string) (tree *guard.Tree, marker string) {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	marker = "GUARD_TEST=" + rand.Text()
	cmd := &exec.Cmd{Path: path, Args: args, Env: append(os.Environ(), marker), Stdin: null, Stdout: null, Stderr: null}
	tree, err = guard.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return tree, marker
}

func TestHowACommandEnded(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":            "it exited with status 0",
		"exit 3":            "it ended: exit status 3",
		"kill -9 $$":        "it ended: signal: killed",
		"kill -ABRT $$":     "it ended: signal: aborted",
		"exec 1>&-; exit 0": "it exited with status 0",
	} {
		tree, _ := start(t, "sh", "-c", script)
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
	_, err := guard.Start(&exec.Cmd{Path: path, Args: []string{path}})
	if err == nil {
		t.Fatal("it started")
	}
	if runtime.GOOS == "linux" && err != syscall.ENOEXEC {
		t.Errorf("got %v, want %v", err, syscall.ENOEXEC)
	}
}

// The tree holds a grandchild, one that ignores SIGTERM, one that does so in a
// session of its own, and one whose parent has ended.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a session of its own leads out of the tree")
	}
	ends := map[string]func(*guard.Tree){
		"killed":     func(tree *guard.Tree) { tree.Kill() },
		"terminated": func(tree *guard.Tree) { tree.Terminate() },
		"let go":     func(tree *guard.Tree) { tree.Reap() },
		"command killed": func(tree *guard.Tree) {
			process, err := os.FindProcess(tree.Pid())
			if err == nil {
				_ = process.Kill()
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := mcptest.NewLedger(t)
			tree, marker := start(t, mcptest.Fake(t), "-fault", "double-fork", "-http", "127.0.0.1:0", "-ledger", ledger.Path)
			ledger.WaitFor("child", 5)
			end(tree)
			began := time.Now()
			_ = tree.Wait()
			tree.Reap()
			if left := mcptest.Processes(marker); len(left) > 0 {
				t.Errorf("%d processes are left", len(left))
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestATreeOfManyGenerations(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a session of its own leads out of the tree")
	}
	const nest = `trap "" TERM; n=$1; if [ $n -gt 0 ]; then setsid sh -c "$0" "$0" $((n-1)); else sleep 600; fi; sleep 600`
	tree, marker := start(t, "setsid", "-w", "sh", "-c", nest, nest, "20")
	for end := time.Now().Add(10 * time.Second); len(mcptest.Processes(marker)) < 20 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	tree.Kill()
	_ = tree.Wait()
	tree.Reap()
	if left := mcptest.Processes(marker); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}
