package main_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// On a kernel without Landlock or without seccomp filters a server with a sandbox is refused,
// or starts with a warning if its entry allows that. A filter around dynmcp simulates such a
// kernel.
func TestOldKernels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		filter  []bpf.Instruction
		missing string // of every sandbox
		listed  string // and of one with a list of hosts
	}{
		"no Landlock": {
			[]bpf.Instruction{
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
				bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
			},
			`files \(the kernel has no Landlock, 5\.13 or newer has\)`, "",
		},
		"no seccomp": {
			[]bpf.Instruction{
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SECCOMP, SkipTrue: 1},
				bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_PRCTL, SkipTrue: 3},
				bpf.LoadAbsolute{Off: 16, Size: 4}, // what it sets
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PR_SET_SECCOMP, SkipTrue: 1},
				bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
			},
			`.*system calls and kinds of sockets \(the kernel has no seccomp filters\)`, `.*connections around its proxy`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkOldKernel(t, c.filter, c.missing, c.listed)
		})
	}
}

func checkOldKernel(t *testing.T, filter []bpf.Instruction, missing, listed string) {
	dir := t.TempDir()
	config := writeFile(t, dir, "mcp.json", fmt.Sprintf(`{"mcp": {
		"strict": {"command": %[1]q, "args": ["-name", "strict"], "sandbox": true},
		"best": {"command": %[1]q, "args": ["-name", "best"], "sandbox": {"best_effort": true}},
		"alone": {"command": %[1]q, "args": ["-name", "alone"], "sandbox": {"best_effort": true, "network": "none"}},
		"listed": {"command": %[1]q, "args": ["-name", "listed"], "sandbox": {"best_effort": true, "network": ["a.example.com"]}}}}`, mcptest.Fake(t)))
	files := `this system cannot (?:limit|restrict) ` + missing
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"ls"}, []string{`strict: it is not started here: ` + files, `best: its sandbox is incomplete: ` + files}},
		{[]string{"test"}, []string{`alone .*PASS`, `listed .*PASS[^!]*warning: its sandbox is incomplete: ` + files + listed, `strict .*FAIL`, files + `.*"best_effort": true`, `best .*PASS`, `its sandbox is incomplete: ` + files}},
		{[]string{"doctor", "--no-start"}, []string{`strict.*: it is not started here: ` + files, `best.*: its sandbox is incomplete: ` + files}},
		{[]string{"call", "best/echo", "--verbose"}, []string{`level=WARN msg="sandbox incomplete: ` + files + `" upstream=best`}},
		{[]string{"sandbox", "strict"}, []string{`It is not started here: ` + files}},
	} {
		said := onKernel(t, filter, dir, append(c.args, "-c", config)...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%q: %s is not said:\n%s", c.args, want, said)
			}
		}
	}
}

// onKernel runs dynmcp under a filter that simulates another kernel, and returns its output.
func onKernel(t *testing.T, filter []bpf.Instruction, home string, args ...string) string {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "said")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(mcptest.Dynmcp(t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, out, out
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
	program := append([]bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}, filter...) // the number of the call
	raw, err := bpf.Assemble(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		t.Fatal(err)
	}
	var read []byte // as the kernel reads it
	for _, i := range raw {
		read = append(binary.NativeEndian.AppendUint16(read, i.Op), i.Jt, i.Jf)
		read = binary.NativeEndian.AppendUint32(read, i.K)
	}
	tree, err := guard.Start(cmd, nil, &guard.Restrictions{Filter: func() ([]byte, error) { return read, nil }})
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
