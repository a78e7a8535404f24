package mcptest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// Runner is *testing.M or a wrapper of it.
type Runner interface{ Run() int }

// Main runs a package's tests from its TestMain, fails them if goroutines are left, and removes the
// programs that were built for them.
//
// Unless -parallel is given, more parallel tests run than there are processors: they mostly wait
// for processes to start and to end.
func Main(m *testing.M) { MainParallel(m, 8) }

// MainParallel is Main with a number of parallel tests for each processor.
func MainParallel(m *testing.M, each int) {
	Parallel(each)
	goleak.VerifyTestMain(Wrap(m))
}

// Parallel sets the number of parallel tests for each processor, unless -parallel is given.
func Parallel(each int) {
	const parallel = "test.parallel"
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == parallel })
	if !chosen {
		if err := flag.Set(parallel, strconv.Itoa(each*runtime.NumCPU())); err != nil {
			panic(err) // not reached: testing defines the flag
		}
	}
}

// Wrap returns a runner that runs m and removes the built programs, for a TestMain with a runner of
// its own, such as testscript's.
func Wrap(m Runner) Runner { return cleaner{m} }

type cleaner struct{ Runner }

func (c cleaner) Run() int {
	built.mu.Lock()
	built.wrapped = true
	built.mu.Unlock()
	defer built.remove()
	return c.Runner.Run()
}

// built holds the programs built by this test process.
var built builds

type builds struct {
	mu      sync.Mutex
	wrapped bool // Wrap was called, which calls remove
	dir     string
	done    map[string]*program
}

type program struct {
	once sync.Once
	path string
	err  error
}

// NATS is the main package of nats-server, a dependency of module bench.
const NATS = "github.com/nats-io/nats-server/v2"

const dynmcpPackage = "github.com/dynmcp/dynmcp/cmd/dynmcp"

// Dynmcp builds the proxy and returns its path.
func Dynmcp(t testing.TB) string { return Binary(t, dynmcpPackage) }

// Fake builds fakemcp and returns its path.
func Fake(t testing.TB) string { return Binary(t, "github.com/dynmcp/dynmcp/internal/mcptest/fakemcp") }

// Binary builds a main package, once for all tests of the process, and returns the program's path.
// The program overwrites borrowed lines as soon as they must not be used any more
// (wire.OverwriteLent). It is built with the race detector if the test is. If MCPTEST_PROGRAMS
// names a directory with the program, nothing is built: .ci/windows runs tests without a go
// command.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	p, dir := built.program(t, pkg)
	p.once.Do(func() { p.path, p.err = build(dir, pkg) })
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}

func (b *builds) program(t testing.TB, pkg string) (p *program, dir string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wrapped {
		t.Fatal("mcptest: TestMain must call mcptest.Main, or run mcptest.Wrap(m), so that built programs are removed")
	}
	if b.dir == "" {
		var err error
		if b.dir, err = os.MkdirTemp("", "mcptest"); err != nil {
			t.Fatal(err)
		}
		b.done = map[string]*program{}
	}
	if b.done[pkg] == nil {
		b.done[pkg] = &program{}
	}
	return b.done[pkg], b.dir
}

func build(dir, pkg string) (string, error) {
	name, copies := path.Base(pkg), "cp"
	if pkg == NATS {
		name = "nats-server"
	}
	if runtime.GOOS == "windows" {
		name, copies = name+".exe", "cmd /c copy"
	}
	if built := filepath.Join(os.Getenv("MCPTEST_PROGRAMS"), name); filepath.IsAbs(built) {
		if _, err := os.Stat(built); err == nil {
			return built, nil
		}
	}
	out := filepath.Join(dir, name)
	// Unlike go build, go run keeps the linked program in Go's cache, for the tests of all packages.
	// It runs "cp program out". Without the tag of a release the program is none.
	args := []string{"run", "-buildvcs=false", "-exec", copies, "-ldflags", "-X github.com/dynmcp/dynmcp/internal/wire.lent=overwritten"}
	if RaceEnabled && pkg != NATS {
		args = append(args, "-race")
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if pkg == NATS {
		root = filepath.Join(root, "bench")
	}
	args = append([]string{"-C", root}, args...)
	cmd := exec.Command("go", append(args, pkg, out)...)
	if !RaceEnabled && pkg != dynmcpPackage {
		// Programs start in half the time without libc. For dynmcp that would compile all of its
		// packages once more.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return out, nil
}

// moduleRoot returns the directory of dynmcp's module, which contains the other modules.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, "go.mod")) // if absent it is further up
		if strings.HasPrefix(string(text), "module github.com/dynmcp/dynmcp\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod of dynmcp is above the working directory")
		}
	}
	return "", err
}

func (b *builds) remove() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}
