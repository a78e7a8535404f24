package main_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Where the kernel has no Landlock, a server with a sandbox is refused, or starts with a warning if
// its entry says so. The kernel is one by a filter under which dynmcp runs.
func TestKernelWithoutLandlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	text := fmt.Sprintf(`{"mcp": {
		"strict": {"command": %[1]q, "args": ["-name", "strict"], "sandbox": true},
		"best": {"command": %[1]q, "args": ["-name", "best"], "sandbox": {"best_effort": true}}}}`, mcptest.Fake(t))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const files = `this system cannot limit files \(the kernel has no Landlock, 5\.13 or newer has\)`
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"ls"}, []string{`strict: it is not started here: ` + files, `best: its sandbox is not whole: ` + files}},
		{[]string{"test"}, []string{`strict .*FAIL`, files + `.*"best_effort": true`, `best .*PASS`, `its sandbox is not whole: ` + files}},
		{[]string{"doctor", "--no-start"}, []string{`strict.*: it is not started here: ` + files, `best.*: its sandbox is not whole: ` + files}},
		{[]string{"call", "best/echo", "--verbose"}, []string{`level=WARN msg="the sandbox is not whole: ` + files + `" upstream=best`}},
		{[]string{"sandbox", "strict"}, []string{`It is not started here: ` + files}},
	} {
		said := withoutLandlock(t, dir, append(c.args, "-c", config)...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%q: %s is not said:\n%s", c.args, want, said)
			}
		}
	}
}

// withoutLandlock runs dynmcp under a filter by which the kernel has no Landlock, and returns what it
// prints.
func withoutLandlock(t *testing.T, home string, args ...string) string {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "said")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(mcptest.Dynmcp(t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, out, out
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		t.Fatal(err)
	}
	var filter []byte
	for _, i := range raw {
		filter = append(binary.NativeEndian.AppendUint16(filter, i.Op), i.Jt, i.Jf)
		filter = binary.NativeEndian.AppendUint32(filter, i.K)
	}
	tree, err := guard.Start(cmd, nil, &guard.Walls{Filter: func() ([]byte, error) { return filter, nil }})
	if err != nil {
		t.Fatal(err)
	}
	_ = tree.Wait() // it says how it ended
	tree.Reap()
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
