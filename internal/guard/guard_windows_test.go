package guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func init() {
	roles["arguments"] = func() { fmt.Print(windows.UTF16PtrToString(syscall.GetCommandLine())) }
	// A parent whose child would stay for ever.
	roles["parent"] = func() {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVariable+"=child")
		if err := child.Start(); err == nil {
			fmt.Println(child.Process.Pid)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	roles["child"] = func() { time.Sleep(10 * time.Minute) } // select {} would be reported as a deadlock
	// A process that has used the guard, and starts a child without it and one that outlives it.
	roles["user"] = func() {
		tree, err := guard.Start(&exec.Cmd{Path: os.Args[0], Args: os.Args[:1], Env: append(os.Environ(), roleVariable+"=arguments")}, nil, nil)
		if err != nil {
			panic(err)
		}
		_ = tree.Wait()
		tree.Reap()
		for _, start := range []func(cmd *exec.Cmd){func(*exec.Cmd) {}, guard.Outlive} {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), roleVariable+"=child")
			start(child)
			if err := child.Start(); err != nil {
				panic(err)
			}
			fmt.Println(child.Process.Pid)
		}
		roles["child"]()
	}
}

// A batch file passes its arguments on unchanged, as npx.cmd does.
func TestArgumentsOfABatchFile(t *testing.T) {
	for _, folder := range []string{"plain", "with spaces & (more)", "grün"} {
		batchFilePassesOn(t, folder, map[string]string{
			"-y": "-y", "@scope/name@1.2.3": "@scope/name@1.2.3", "": `""`, "two words": `"two words"`, `C:\a dir\`: `"C:\a dir\\"`,
			"&echo injected": `"&echo injected"`, "a|b<c>d^e(f)": `"a|b<c>d^e(f)"`, `"&echo injected`: `"""&echo injected"`,
			`{"a":"b & c"}`: `"{""a"":""b & c""}"`, "!PATH!": `"!PATH!"`, "a=b,c;d": `"a=b,c;d"`, "grün": `"grün"`,
		})
	}
}

func TestPercentSignsOfABatchFile(t *testing.T) {
	batchFilePassesOn(t, "100%PATH%", map[string]string{"%PATH%": `"%PATH%"`, "100%": `"100%"`, "%CMDCMDLINE:~-1%&echo injected": `"%CMDCMDLINE:~-1%&echo injected"`})
}

func batchFilePassesOn(t *testing.T, folder string, arguments map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), folder)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "run.cmd")
	if err := os.WriteFile(script, []byte("@echo off\r\n\""+os.Args[0]+"\" %*\r\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	args, want := []string{script}, `"`+os.Args[0]+`"`
	for arg, written := range arguments {
		args, want = append(args, arg), want+" "+written
	}
	cmd := &exec.Cmd{Path: script, Args: args, Env: append(os.Environ(), roleVariable+"=arguments")}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	tree, err := guard.Start(cmd, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = tree.Wait()
	tree.Reap()
	if got := strings.Join(strings.Fields(out.String()), " "); got != want {
		t.Errorf("%s:\n got %s\nwant %s", folder, got, want)
	}
}

func TestATreeEndsAsAWhole(t *testing.T) {
	for name, end := range map[string]func(tree *guard.Tree, stdin io.Closer){
		"killed":           func(tree *guard.Tree, _ io.Closer) { tree.Kill() },
		"ended by itself":  func(_ *guard.Tree, stdin io.Closer) { stdin.Close() },
		"its job is gone":  func(tree *guard.Tree, _ io.Closer) { tree.Reap() },
		"killed by others": func(tree *guard.Tree, _ io.Closer) { p, _ := os.FindProcess(tree.Pid()); _ = p.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			in, stdin, err1 := os.Pipe()
			stdout, out, err2 := os.Pipe()
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			cmd := &exec.Cmd{Path: os.Args[0], Args: os.Args[:1], Env: append(os.Environ(), roleVariable+"=parent"), Stdin: in, Stdout: out}
			tree, err := guard.Start(cmd, nil, nil)
			in.Close()
			out.Close()
			if err != nil {
				t.Fatal(err)
			}
			var child int
			if _, err := fmt.Fscan(stdout, &child); err != nil {
				t.Fatal(err)
			}
			end(tree, stdin)
			_ = tree.Wait()
			if name != "its job is gone" {
				tree.Reap()
			}
			mcptest.WaitGone(t, child)
			stdin.Close()
			stdout.Close()
		})
	}
}

// A command of a process that is killed ends even if it is not in a job of its own yet. One that
// was passed to Outlive, such as a browser, continues.
func TestWhatAProcessLeavesThatIsKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=user")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var begun, outside int
	_, err = fmt.Fscan(out, &begun, &outside)
	if killed := cmd.Process.Kill(); err != nil || killed != nil {
		t.Fatal(err, killed)
	}
	_ = cmd.Wait()
	mcptest.WaitGone(t, begun)
	if !mcptest.Alive(outside) {
		t.Error("the command of Outlive has ended")
	}
	if browser, err := os.FindProcess(outside); err == nil {
		_ = browser.Kill()
		_, _ = browser.Wait()
	}
}

func TestLackOfResources(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		windows.WSAEMFILE: true, windows.ERROR_TOO_MANY_OPEN_FILES: true, windows.ERROR_COMMITMENT_LIMIT: true, windows.ERROR_FILE_NOT_FOUND: false,
	} {
		if got := errors.Is(guard.MarkResources(&os.SyscallError{Syscall: "x", Err: errno}), guard.ErrResources); got != want {
			t.Errorf("%v: got %t", errno, got)
		}
	}
}
