package guard

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A Tree is a command that was started, and everything it starts in turn: a job object that
// ends with its last handle, which this process holds.
type Tree struct {
	cmd *exec.Cmd
	job windows.Handle
}

// Start starts cmd, out of reach of a Ctrl-C of our console. Wait and then Reap
// must be called. A failure that is not the command's fault is ErrResources.
func Start(cmd *exec.Cmd, _ *Fence, _ *Restrictions) (*Tree, error) {
	if err := Batch(cmd); err != nil {
		return nil, err
	}
	join()
	job, err := newJob(0)
	if err != nil {
		return nil, MarkResources(err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED
	cmd.SysProcAttr.HideWindow = true // a host without a console would show one for each server
	t := &Tree{cmd, job}
	if err := cmd.Start(); err != nil {
		t.Reap()
		return nil, MarkResources(err)
	}
	if err := t.adopt(); err != nil {
		_ = cmd.Process.Kill()
		_ = t.Wait()
		t.Reap()
		return nil, MarkResources(err)
	}
	return t, nil
}

// Batch makes the system's shell run the command if it is a batch file, with arguments quoted
// so that they arrive unchanged.
func Batch(cmd *exec.Cmd) error {
	if !IsBatch(cmd.Path) {
		return nil
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	if cmd.Dir != "" {
		if cmd.Dir, err = BatchDir(cmd.Dir); err != nil {
			return err
		}
	} else if own, err := os.Getwd(); err == nil && own != plainPath(own) {
		cmd.Dir = plainPath(own)
	}
	shell := filepath.Join(system, "cmd.exe")
	line, err := BatchLine(shell, cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	cmd.Path = shell
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: line}
	return nil
}

// joined is set when this process is in the job of join.
var joined atomic.Bool

// join puts this process into a job that ends with it, in which its commands start. Otherwise a
// command that is not in a job of its own yet when this process is killed would stay, suspended;
// that remains possible if the system refuses the job. The end of the process closes the handle.
var join = sync.OnceFunc(func() {
	job, err := newJob(windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK)
	if err != nil {
		return
	}
	if windows.AssignProcessToJobObject(job, windows.CurrentProcess()) != nil {
		_ = windows.CloseHandle(job)
		return
	}
	joined.Store(true)
})

// Outlive lets a command, which has not been started, continue when this process ends.
func Outlive(cmd *exec.Cmd) {
	if joined.Load() {
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_BREAKAWAY_FROM_JOB}
	}
}

// newJob returns a job, with further limits, whose processes end with its last handle, also when
// this process is killed.
func newJob(limits uint32) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | limits
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// adopt puts the command into the job and resumes it: its children are in the job too.
func (t *Tree) adopt() error {
	var err error
	handleErr := t.cmd.Process.WithHandle(func(process uintptr) {
		if err = windows.AssignProcessToJobObject(t.job, windows.Handle(process)); err != nil {
			return
		}
		if status, _, _ := resume.Call(process); status != 0 {
			err = windows.NTStatus(status)
		}
	})
	return cmp.Or(handleErr, err)
}

// resume is NtResumeProcess. ResumeThread needs the handle of the first thread, which package
// os closes.
var resume = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// Terminate does nothing: there is no SIGTERM, and closing stdin was the request.
func (t *Tree) Terminate() {}

// Kill ends every process of the tree at once.
func (t *Tree) Kill() { _ = windows.TerminateJobObject(t.job, 1) }

// Reap ends the processes that the command left behind.
func (t *Tree) Reap() {
	_ = windows.TerminateJobObject(t.job, 1)
	_ = windows.CloseHandle(t.job)
}
