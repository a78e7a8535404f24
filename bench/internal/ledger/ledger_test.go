package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// books reads ledgers, given as texts by name.
func books(t *testing.T, ledgers map[string]string) *Books {
	t.Helper()
	dir := t.TempDir()
	for name, text := range ledgers {
		if err := os.WriteFile(filepath.Join(dir, name+Suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProcessesOfOneServerAfterEachOtherAreInOrder(t *testing.T) {
	b := books(t, map[string]string{
		"one-0.10.100": "100 start r1\n150 beat -\n160 call a\n200 beat -\n",
		"one-0.11.201": "201 start r2\n220 call b\n300 end -\n",
		"one-1.12.150": "150 start r2\n300 beat -\n",
	})
	if got := b.Overlaps("one-0"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := b.Twice(); len(got) != 0 {
		t.Errorf("run twice: %v", got)
	}
	if got := b.Ran; got["a"] != 1 || got["b"] != 1 {
		t.Errorf("ran %v", got)
	}
	if p := b.Processes[2]; p != (Process{Server: "one-0", Replica: "r2", PID: 11, Start: 201, Last: 300, Ended: true}) {
		t.Errorf("got %+v", p)
	}
}

func TestProcessesOfOneServerAtATimeAreSeen(t *testing.T) {
	b := books(t, map[string]string{
		"one-0.10.100": "100 start r1\n500 beat -\n", // the whole time
		"one-0.11.200": "200 start r2\n210 end -\n",
		"one-0.12.300": "300 start r2\n600 beat -\n",
	})
	var got []string
	for _, o := range b.Overlaps("one-0") {
		got = append(got, fmt.Sprint(o.First.PID, " ", o.Second.PID))
	}
	if want := []string{"10 11", "10 12"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want := "one-0: process 10 of replica r1 lived for 10ns when process 11 of replica r2 had begun"
	if got := b.Overlaps("one-0")[0].String(); got != want {
		t.Errorf("got %q", got)
	}
}

func TestCallsThatRanTwiceAreSeen(t *testing.T) {
	b := books(t, map[string]string{
		"one-0.10.100":  "100 start r1\n110 call a\n120 call b\n",
		"each-0.11.100": "100 start r2\n115 call b\n120 call c\n121 call c\n",
	})
	if got, want := b.Twice(), []string{"b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReplicasThatHadAServer(t *testing.T) {
	b := books(t, map[string]string{
		"one-0.10.100": "100 start r1\n200 end -\n",
		"one-0.11.300": "300 start r2\n400 end -\n",
		"one-0.12.500": "500 start r3\n600 end -\n",
	})
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{150, 160, []string{"r1"}}, {150, 350, []string{"r1", "r2"}}, {210, 220, []string{"r1"}}, {350, 550, []string{"r2", "r3", "r1"}}, {50, 60, nil},
	} {
		if got := b.At("one-0", c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestAMachineThatStallsIsSeen(t *testing.T) {
	b := books(t, map[string]string{
		"one-0.10.1000000000": "1000000000 start r1\n1050000000 beat -\n9000000000 beat -\n9050000000 beat -\n",
	})
	for at, want := range map[int64]bool{1e6: false, 1.1e9: true, 5e9: true, 9.5e9: true, 11e9: false} {
		if got := b.Stalled(at); got != want {
			t.Errorf("at %d: got %t", at, got)
		}
	}
}

func TestAWriterIsRead(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, "one-0", "r1")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Call("n1"), w.Beat(), w.End()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := Read(dir)
	if err != nil || len(b.Processes) != 1 || b.Ran["n1"] != 1 {
		t.Fatalf("got %+v, %v", b, err)
	}
	if p := b.Processes[0]; p.Server != "one-0" || p.Replica != "r1" || p.PID != os.Getpid() || !p.Ended || p.Last < p.Start {
		t.Errorf("got %+v", p)
	}
}

// A process may be killed before it has written a line. Lines are written whole.
func TestALedgerThatIsCutOffIsRead(t *testing.T) {
	b := books(t, map[string]string{"one-0.10.100": "", "one-0.11.200": "200 start r1\n"})
	if len(b.Processes) != 1 {
		t.Errorf("got %+v", b.Processes)
	}
}

// Living returns only running processes that have written since a time.
func TestLivingProcesses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one-0.10.100": "100 start r1\n" + strings.Repeat("150 call a long nonce\n", 100) + "500 beat -\n",
		"one-0.11.200": "200 start r2\n510 end -\n",
		"one-0.12.300": "300 start r2\n310 beat -\n",
		"one-0.13.400": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+Suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Living(dir, 400)
	if want := (Process{Server: "one-0", Replica: "r1", PID: 10, Start: 100, Last: 500}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %v, %v", got, err)
	}
}
