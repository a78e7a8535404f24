package process

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// writeBelow writes a file below root and returns its path.
func writeBelow(t *testing.T, root, name, text string) string {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheLimitOfMemoryIsTheCgroups(t *testing.T) {
	root := t.TempDir()
	self := writeBelow(t, root, "self", "12:memory:/old\n0::/pods/ours\n")
	for _, step := range []struct {
		file, text string
		want       int64
	}{
		{"pods/ours/memory.max", "max\n", 0},
		{"pods/memory.max", "1000000\n", 1000000},
		{"pods/ours/memory.max", "500000\n", 500000},
		{"memory.max", "900000\n", 500000},
	} {
		writeBelow(t, root, step.file, step.text)
		if got, ok := cgroupMemory(self, root); got != step.want || ok != (step.want != 0) {
			t.Errorf("with %s %q: got %d, %t, want %d", step.file, step.text, got, ok, step.want)
		}
	}
	if got, ok := cgroupMemory(filepath.Join(root, "nothing"), root); ok {
		t.Errorf("without cgroups: got %d", got)
	}
}

// The live data of many hosts must not exceed a fixed limit, which would keep the collector running.
func TestManyHostsHaveNoFixedLimitOfMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	TuneMemory()
	if got := debug.SetMemoryLimit(-1); got != 224<<20 {
		t.Errorf("one host: the limit is %d", got)
	}
	TuneMemoryForMany()
	want := int64(math.MaxInt64)
	if most, ok := cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup"); ok {
		want = most / 10 * 9
	}
	if got := debug.SetMemoryLimit(-1); got != want {
		t.Errorf("many hosts: the limit is %d, want %d", got, want)
	}
}
