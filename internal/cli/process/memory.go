package process

import (
	"bytes"
	"context"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// TuneMemory lets the heap grow to five times the live data before it is collected, up to a soft
// limit, unless GOGC and GOMEMLIMIT are set. The live data is a catalogue of some MB; nearly
// everything else is messages in transit. Measured on calls of 10 KB and 1 MB, the growth saves
// a tenth to a third of the time. The limit leaves 32 MB of 256 to memory that the runtime does
// not count; 64 calls of 1 MB in flight peak at 231 MB with it, at 820 without.
func TuneMemory() {
	setMemory(400, 224<<20)
}

// TuneMemoryForMany is TuneMemory for a run with many hosts, whose live data grows with the sessions.
// With a fixed limit the collector would run all the time (with 224 MB, 20,000 sessions took eight
// times the CPU). The limit is nine tenths of the cgroup's limit, if there is one, and the heap grows
// to twice the live data.
func TuneMemoryForMany() {
	limit := int64(math.MaxInt64)
	if most, ok := cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup"); ok {
		limit = most / 10 * 9
	}
	setMemory(100, limit)
}

func setMemory(percent int, limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// cgroupMemory returns the lowest memory limit of the process's cgroup (v2) and its ancestors.
// self is the file that names the cgroup, and root the mount point; a container sees its own
// cgroup as the root.
func cgroupMemory(self, root string) (most int64, ok bool) {
	text, err := regular.Read(context.Background(), self, regular.Small)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		at, unified := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for at = path.Clean("/" + at); unified; at = path.Dir(at) {
			text, _ := regular.Read(context.Background(), path.Join(root, at, "memory.max"), regular.Small) // the root has no such file
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && (!ok || n < most) {
				most, ok = n, true
			}
			if at == "/" {
				break
			}
		}
	}
	return most, ok
}
