//go:build unix

package stacks

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs this program as the counted one if PARK is set.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("PARK")); err == nil {
		park(n)
	}
	goleak.VerifyTestMain(m)
}

func park(n int) {
	up := make(chan bool)
	for range n {
		go parked(up)
		<-up
	}
	os.Stdout.WriteString("ready\n")
	// Not select: the runtime ends a program whose goroutines are all blocked forever.
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func parked(up chan<- bool) {
	up <- true
	<-make(chan bool)
}

var mainRuns = regexp.MustCompile(`(?m)^goroutine 1 .*\[running.*\]:$`)

// dump starts a program with n goroutines and ends it by SIGQUIT.
func dump(t *testing.T, n int) Count {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PARK="+strconv.Itoa(n))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // status 2
	if mainRuns.Match(stderr.Bytes()) {
		return dump(t, n) // while main runs its stack may be missing
	}
	return Parse(stderr.String())
}

func TestGoroutinesOfAProcessAreCounted(t *testing.T) {
	few, many := dump(t, 3), dump(t, 10)
	if got, want := many.Total()-few.Total(), 7; got != want {
		t.Errorf("got %d goroutines more, want %d:\n%v\n%v", got, want, few, many)
	}
	got := Difference(few, many)
	if !strings.Contains(got, "3, then 10: ") || !strings.Contains(got, "stacks.parked < github.com/dynmcp/dynmcp/bench/internal/stacks.park.gowrap1 < created by github.com/dynmcp/dynmcp/bench/internal/stacks.park\n") {
		t.Errorf("the difference does not have the new goroutines:\n%s", got)
	}
	if got := Difference(few, dump(t, 3)); got != "" {
		t.Errorf("got a difference of equal processes:\n%s", got)
	}
}

// A timer that fires during the dump is not counted, unless its function hangs.
func TestTimersThatFire(t *testing.T) {
	const begins = "goroutine 7 [runnable]:\nruntime.goexit({})\n\t/asm.s:1\ncreated by time.goFunc in goroutine 1\n\t/sleep.go:1\n"
	const hangs = "goroutine 8 [chan receive]:\nmain.late()\n\t/main.go:1\ncreated by time.goFunc in goroutine 1\n\t/sleep.go:1\n"
	if c := Parse(begins + "\n" + hangs); c.Total() != 1 {
		t.Errorf("counted %v", c)
	}
}
