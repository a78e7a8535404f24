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

// A Fence is a deadline that guards obey by themselves: at it they kill their
// trees, without grace, unless it was moved on meanwhile. So a tree is dead by then
// although we are stopped (SIGSTOP), hang, or are gone.
//
// The deadline is in memory that we share with the guards, in a file without a
// name. It passes on a suspended machine too, where the trees are killed when that
// goes on. What a fence cannot do: kill the tree of a guard that is itself stopped,
// by the tree for instance, while we are.
type Fence struct {
	file *os.File // read-only for everybody, us included, once it is mapped

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
	// A command could open the file by way of our /proc/PID/fd. Only what is mapped
	// already can write from here on; a kernel before 5.1 does not know that seal.
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

// Extend moves the deadline on, for all trees that were and will be started with
// the fence. One that is earlier than the present one changes nothing.
func (f *Fence) Extend(until time.Time) {
	// Between the call that gave until and this one the machine may have been
	// suspended, of which only the wall clock knows.
	base, now := child.BootTime(), time.Now()
	deadline := base + int64(min(until.Sub(now), until.Round(0).Sub(now.Round(0))))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil && deadline > f.deadline.Load() {
		f.deadline.Store(deadline)
	}
}

// Close lets the deadline pass as it is: what still runs with the fence is killed
// then. Nothing may be started with it any more, or be about to.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil {
		f.deadline = nil
		_ = unix.Munmap(f.page)
		f.file.Close()
	}
}
