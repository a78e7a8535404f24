package mcptest

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// jobs has the windows.Handle of a job for each marker: the process with the marker is in the job,
// and so are its descendants. The test process holds the handles until it ends.
var jobs sync.Map

// begin starts a process in a job, in which the Ctrl-C of this console does not reach it.
func begin(p *Process) error {
	cmd := p.cmd
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	jobs.Store(p.marker, job)
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED, HideWindow: true}
	if p.opts.Console {
		cmd.SysProcAttr.CreationFlags = windows.CREATE_NEW_CONSOLE | windows.CREATE_SUSPENDED
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if handleErr := cmd.Process.WithHandle(func(process uintptr) {
		err = windows.AssignProcessToJobObject(job, windows.Handle(process))
		_, _, _ = resume.Call(process) // one that stays suspended is found by its test
	}); handleErr != nil {
		return handleErr
	}
	return err
}

var resume = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// killGroup kills the child and its descendants.
func killGroup(p *Process) {
	if job, ok := jobs.Load(p.marker); ok {
		_ = windows.TerminateJobObject(job.(windows.Handle), 1)
	}
}

// Processes returns the process that was started with this marker and its descendants, as far as
// they are running. It finds none by other variables.
func Processes(marker string) []int {
	job, ok := jobs.Load(marker)
	if !ok {
		return nil
	}
	var list struct {
		assigned, listed uint32
		pids             [1000]uintptr
	}
	err := windows.QueryInformationJobObject(job.(windows.Handle), windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil {
		return nil
	}
	var found []int
	for _, pid := range list.pids[:list.listed] {
		if Alive(int(pid)) {
			found = append(found, int(pid))
		}
	}
	return found
}

// terminate can only kill: no signal like SIGTERM reaches one process.
func (p *Process) terminate() { p.Signal(os.Kill) }

// A ConsoleEvent is what a console sends to its programs, as a signal.
type ConsoleEvent uint32

// Events of a console.
const (
	CtrlC     = ConsoleEvent(windows.CTRL_C_EVENT)
	CtrlBreak = ConsoleEvent(windows.CTRL_BREAK_EVENT)
	CtrlClose = ConsoleEvent(windows.CTRL_CLOSE_EVENT)
)

func (ConsoleEvent) Signal() {}

func (e ConsoleEvent) String() string { return fmt.Sprintf("console event %d", uint32(e)) }

// signal sends an event to a process with a console (CtrlC to all processes on it), or kills a
// process. It skips the test for signals that Windows lacks.
func (p *Process) signal(s os.Signal) error {
	if s == os.Interrupt {
		s = CtrlC
	}
	if event, ok := s.(ConsoleEvent); ok && p.opts.Console {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", sends, event, p.Pid()))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if s != os.Kill {
		p.t.Skipf("Windows cannot send %v to a process", s)
	}
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, syscall.EINVAL) { // Wait has returned since
		return os.ErrProcessDone
	}
	return err
}

// sends is the variable with the event and process id for a copy of this program that only sends the
// event. A process has one console at a time, so the copy attaches to the console of the other one.
const sends = "MCPTEST_SENDS"

func init() {
	var event ConsoleEvent
	var pid uint32
	if _, err := fmt.Sscan(os.Getenv(sends), &event, &pid); err != nil {
		return
	}
	var err error
	if event != CtrlC {
		err = sendEvent(event, pid)
	} else {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // this process receives it too
		_, _, _ = kernel32.NewProc("FreeConsole").Call()     // it may have none
		if ok, _, failed := kernel32.NewProc("AttachConsole").Call(uintptr(pid)); ok == 0 {
			log.Fatalf("AttachConsole: %v", failed)
		}
		err = windows.GenerateConsoleCtrlEvent(windows.CTRL_C_EVENT, 0)
	}
	if err != nil {
		log.Fatalf("%v: %v", event, err)
	}
	os.Exit(0)
}

// sendEvent starts in a process the thread with which the system delivers console events.
// GenerateConsoleCtrlEvent cannot send CtrlClose, and in Wine not CtrlBreak either.
func sendEvent(event ConsoleEvent, pid uint32) error {
	const rights = windows.PROCESS_CREATE_THREAD | windows.PROCESS_QUERY_INFORMATION | windows.PROCESS_VM_OPERATION |
		windows.PROCESS_VM_READ | windows.PROCESS_VM_WRITE
	process, err := windows.OpenProcess(rights, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	routine := windows.NewLazySystemDLL("kernelbase.dll").NewProc("CtrlRoutine") // at the same address everywhere
	if err := routine.Find(); err != nil {
		return err
	}
	thread, _, err := kernel32.NewProc("CreateRemoteThread").Call(uintptr(process), 0, 0, routine.Addr(), uintptr(event), 0, 0)
	if thread == 0 {
		return err
	}
	return windows.CloseHandle(windows.Handle(thread))
}

var kernel32 = windows.NewLazySystemDLL("kernel32.dll")

func killPid(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

func exists(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

func zombie(int) bool { return false }

func commandLine(int) string { return "command unknown" }
