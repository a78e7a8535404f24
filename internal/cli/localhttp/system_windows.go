package localhttp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// hasSockets reports that paths are those of sockets.
const hasSockets = false

// Dirs returns the directory of the runs of this user, which is in the user's profile.
func Dirs() []string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return []string{filepath.Join(dir, "dynmcp-runs")}
}

const noFollow = 0

// lock reports whether this process has the lock of a file now.
func lock(file *os.File) (bool, error) {
	const exclusively, all = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY, ^uint32(0)
	err := windows.LockFileEx(windows.Handle(file.Fd()), exclusively, 0, all, all, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// mark is the first word of a file that names a port of the loopback interface and a secret.
const mark = "dynmcp"

// listenPrivately listens on a port of the loopback interface, and writes it to a file with a new
// secret.
func listenPrivately(path string) (net.Listener, secret, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	known := secret(rand.Text())
	if err := writePrivately(path, fmt.Sprintf("%s %s %s\n", mark, listener.Addr(), known)); err != nil {
		listener.Close()
		return nil, "", err
	}
	return listener, known, nil
}

// writePrivately creates a file that only this user can read, in whatever directory.
func writePrivately(path, text string) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err
	}
	descriptor, err := windows.SecurityDescriptorFromString(fmt.Sprintf("D:P(A;;FA;;;%s)", user.User.Sid))
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, &attributes, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(handle), path)
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// addressOf returns where the run at a path listens: the contents of a file that listenPrivately wrote.
func addressOf(ctx context.Context, path string) (network, address string, known secret, err error) {
	text, err := regular.Head(ctx, path, 200)
	if err != nil {
		return "", "", "", err
	}
	if words := strings.Fields(string(text)); len(words) == 3 && words[0] == mark {
		return "tcp", words[1], secret(words[2]), nil
	}
	return "", "", "", errForeign
}

// isOfRun reports whether a file may be what a run has left.
func isOfRun(path string, _ fs.FileInfo) bool {
	_, _, _, err := addressOf(context.Background(), path)
	return err == nil
}

func addLink(path, link string) error { return os.Link(path, link) }

func isRefused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

func isReset(err error) bool {
	return errors.Is(err, windows.WSAECONNRESET) || errors.Is(err, windows.WSAECONNABORTED)
}

// CheckPeer does nothing: each request proves that its program can read the secret.
func CheckPeer(net.Conn) error { return nil }

// checkOwner does nothing: what others may do in a directory depends on the profile that contains it.
func checkOwner(string, fs.FileInfo) error { return nil }

// OpenLog truncates or creates a file.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// Detach starts a command without the console of this process, so that it outlives it and gets no
// signals from it. Its servers show no window.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP}
}
