package box_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

var fileAttempts = []attempt{
	{name: "read a key", try: read, args: secretOf},
	{name: "list a home directory", try: func(a []string) error { _, err := os.ReadDir(a[0]); return err }, args: func(w *world) []string { return []string{w.home} }},
	{name: "read a key by a symbolic link", try: func(a []string) error {
		link := filepath.Join(a[1], "link")
		os.Remove(link)
		if err := os.Symlink(a[0], link); err != nil {
			return err
		}
		return read([]string{link})
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "read a key by a hard link", try: func(a []string) error {
		link := filepath.Join(a[1], "hard")
		os.Remove(link)
		if err := os.Link(a[0], link); err != nil {
			return err
		}
		return read([]string{link})
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "move a key", try: func(a []string) error {
		if err := os.Rename(a[0], filepath.Join(a[1], "moved")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(a[1], "moved"), a[0])
	}, args: func(w *world) []string { return []string{w.secret, w.temp} }},
	{name: "use another capability of root", try: shell, args: func(*world) []string { return []string{"chroot / true"} }},
	{name: "read a key by /proc/self/root", try: read, args: func(w *world) []string { return []string{"/proc/self/root" + w.secret} }},
	{name: "read a key by a relative path", try: func(a []string) error {
		if err := os.Chdir(a[1]); err != nil {
			return err
		}
		return read([]string{a[0]})
	}, args: func(w *world) []string {
		up, _ := filepath.Rel(w.work, w.secret)
		return []string{up, w.work}
	}},
	{name: "read a key from a grandchild", try: shell, args: func(w *world) []string { return []string{"sh -c 'sh -c \"cat " + w.secret + "\"'"} }},
	{name: "read a key from a session of its own", try: shell, args: func(w *world) []string { return []string{"setsid -w cat " + w.secret} }},
	{name: "change a key", try: func(a []string) error { return os.WriteFile(a[0], []byte("key"), 0o600) }, args: secretOf},
	{name: "cut a key short", try: func(a []string) error { return os.Truncate(a[0], 3) }, args: secretOf},
	{name: "make a file in a home directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], ".bashrc"), nil, 0o600) }, args: func(w *world) []string { return []string{w.home} }},
	{name: "change its own directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], "x"), nil, 0o600) }, args: func(w *world) []string { return []string{w.work} }},
	{name: "read another server's temporary directory", try: func(a []string) error { _, err := os.ReadDir(a[0]); return err }, args: func(w *world) []string { return []string{w.other} }},
	{name: "write into another server's temporary directory", try: func(a []string) error { return os.WriteFile(filepath.Join(a[0], "x"), nil, 0o600) }, args: func(w *world) []string { return []string{w.other} }},
	{name: "open a fifo", try: func(a []string) error { return open(a[0], unix.O_RDWR|unix.O_NONBLOCK) }, args: func(w *world) []string {
		fifo := filepath.Join(w.home, "fifo")
		_ = unix.Mkfifo(fifo, 0o600)
		return []string{fifo}
	}},
	{name: "run a program from a home directory", try: func(a []string) error { return exec.Command(a[0]).Run() }, args: func(w *world) []string {
		program := filepath.Join(w.home, "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			w.t.Fatal(err)
		}
		return []string{program}
	}},
	{name: "watch the shadow passwords", try: read, args: func(*world) []string { return []string{"/etc/shadow"} }},
	{name: "read a key by the root of a process", try: read, args: func(w *world) []string { return []string{"/proc/" + strconv.Itoa(w.victim) + "/root" + w.secret} }},
	{name: "read a key by a file handle", try: func(a []string) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
		if err != nil {
			return err
		}
		root, err := unix.Open(a[1], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(root)
		fd, err := unix.OpenByHandleAt(root, handle, unix.O_RDONLY)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: func(w *world) []string { return []string{w.secret, w.work} }},
	{name: "read a key with a program in memory", try: func(a []string) error {
		path, err := exec.LookPath("cat")
		if err != nil {
			return err
		}
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fd, err := unix.MemfdCreate("cat", 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "cat")
		defer f.Close()
		if _, err := f.Write(program); err != nil {
			return err
		}
		return exec.Command("/proc/"+strconv.Itoa(os.Getpid())+"/fd/"+strconv.Itoa(fd), a[0]).Run()
	}, args: secretOf},
	{name: "read a key in a namespace of its own", try: func(a []string) error {
		cmd := exec.Command("cat", a[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, Chroot: "/",
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}, args: secretOf},
	{name: "read the memory that programs share", try: read, args: func(w *world) []string {
		f, err := os.CreateTemp("/dev/shm", "dynmcp")
		if err != nil {
			w.t.Skip("there is no /dev/shm")
		}
		w.t.Cleanup(func() { _ = os.Remove(f.Name()) })
		f.Close()
		return []string{f.Name()}
	}},
	{name: "watch a file system", try: func([]string) error {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: nothing},
	{name: "read an attribute of a key", try: func(a []string) error { _, err := unix.Getxattr(a[0], "user.from", make([]byte, 9)); return err }, args: attributeOf},
	{name: "list the attributes of a key", try: func(a []string) error { _, err := unix.Llistxattr(a[0], make([]byte, 99)); return err }, args: attributeOf},
	{name: "set an attribute of a key", try: func(a []string) error { return unix.Setxattr(a[0], "user.by", []byte("x"), 0) }, args: attributeOf},
	{name: "read what is typed into a terminal", try: func(a []string) error { return open(a[0], unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK) },
		args: func(w *world) []string { return []string{w.terminal} }},
}

// attributeOf returns a key with an attribute.
func attributeOf(w *world) []string {
	if err := unix.Setxattr(w.secret, "user.from", []byte("it"), 0); err != nil {
		w.t.Skipf("there are no attributes: %v", err)
	}
	return []string{w.secret}
}
