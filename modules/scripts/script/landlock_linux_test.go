package script_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

// role is set in the process that runs as on an old kernel.
const role = "DYNMCP_TEST_OLD_KERNEL"

// oldKernel returns a filter under which the kernel seems to have no Landlock.
func oldKernel() (text []byte, err error) {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	for _, i := range raw {
		text = binary.NativeEndian.AppendUint16(text, i.Op)
		text = binary.NativeEndian.AppendUint32(append(text, i.Jt, i.Jf), i.K)
	}
	return text, err
}

func TestScriptsWithoutLandlock(t *testing.T) {
	if os.Getenv(role) != "" {
		for _, p := range []*script.Pool{{}, {BestEffort: true}} {
			r, err := p.Run(t.Context(), of("return 7"), echo.answer)
			fmt.Printf("%s %v\n", r.Value, err)
			p.Close()
		}
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := &exec.Cmd{Path: self, Args: []string{self, "-test.run=^TestScriptsWithoutLandlock$"}, Env: append(os.Environ(), role+"=1"), Stdout: theirs}
	tree, err := guard.Start(cmd, nil, &guard.Restrictions{Filter: oldKernel})
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(out)
	_ = tree.Wait()
	tree.Reap()
	const want = " scripts are disabled: this system cannot limit files (the kernel has no Landlock, 5.13 or newer has), nor signals and abstract sockets (Linux 6.12 can)" +
		" (\"best_effort\": true in \"scripts\" runs them all the same)\n7 <nil>\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
