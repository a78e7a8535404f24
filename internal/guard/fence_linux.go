package guard

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard/child"
)

// A Fence is a deadline that guards enforce by themselves: they kill their trees then,
// without a grace period, unless it was extended. So a tree is dead by then even if this
// process is stopped (SIGSTOP), hangs, or is gone.
//
// The deadline is in memory that is shared with the guards, in a file without a name. It
// also passes on a suspended machine, where the trees are killed on resume. A fence cannot
// kill the tree of a guard that is itself stopped, by the tree for instance, while this
// process is stopped too.
type Fence struct {
	file *os.File // read-only for every process, including this one, once it is mapped

	mu       sync.Mutex
	page     []byte
	deadline *atomic.Int64 // in page, a child.BootTime; nil when closed
}

// NewFence returns a fence whose deadline has passed: nothing can be started with
// it before the first Extend.
func NewFence() (*Fence, error) {
	fd, err := unix.MemfdCreate("dynmcp-fence", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := &Fence{file: os.NewFile(uintptr(fd), "fence")}
	if err := unix.Ftruncate(fd, child.FenceSize); err != nil {
		f.file.Close()
		return nil, os.NewSyscallError("ftruncate", err)
	}
	f.page, err = unix.Mmap(fd, 0, child.FenceSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.file.Close()
		return nil, os.NewSyscallError("mmap", err)
	}
	f.deadline = (*atomic.Int64)(unsafe.Pointer(&f.page[0]))
	// A command could open the file through our /proc/PID/fd. From here on only existing
	// mappings can write; a kernel before 5.1 does not know that seal.
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.file.Fd(), unix.F_ADD_SEALS, seals|unix.F_SEAL_FUTURE_WRITE); err != nil {
		_, err = unix.FcntlInt(f.file.Fd(), unix.F_ADD_SEALS, seals)
		if err != nil {
			f.Close()
			return nil, os.NewSyscallError("fcntl", err)
		}
	}
	return f, nil
}

// Extend moves the deadline for all trees that were and will be started with the fence. An
// earlier deadline than the present one has no effect.
func (f *Fence) Extend(until time.Time) {
	// The machine may have been suspended since until was computed, which only the wall
	// clock shows.
	base, now := child.BootTime(), time.Now()
	deadline := base + int64(min(until.Sub(now), until.Round(0).Sub(now.Round(0))))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil && deadline > f.deadline.Load() {
		f.deadline.Store(deadline)
	}
}

// Close leaves the deadline as it is: trees that still run with the fence are killed then.
// No tree may be started with it any more, or be about to.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil {
		f.deadline = nil
		_ = unix.Munmap(f.page)
		f.file.Close()
	}
}
