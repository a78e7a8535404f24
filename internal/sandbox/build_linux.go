package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The access rights of Landlock: those of its first version, and what came later, by the
// version that has it (landlock(7)).
const (
	readRights  = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	writeRights = landlock.AccessFSWriteFile | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeChar | landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock |
		landlock.AccessFSMakeFifo | landlock.AccessFSMakeBlock | landlock.AccessFSMakeSym

	withRefer       = 2 // files move between directories
	withTruncate    = 3
	withTCP         = 4
	withIoctl       = 5
	withScopes      = 6 // signals, abstract sockets
	withResolveUnix = 9 // sockets that are files
)

// fileRights are those that a rule for a file, and not a directory, may have.
const fileRights = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSWriteFile |
	landlock.AccessFSTruncate | landlock.AccessFSIoctlDev | landlock.AccessFSResolveUnix

// Build makes the walls of a policy. The error is a *[MissingError] where the kernel lacks
// a part that is not optional.
func Build(p Policy) (*Walls, error) {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		version = 0 // not built in, or not switched on
	}
	w := &Walls{Missing: missing(p, version)}
	if len(w.Missing) > 0 && !p.BestEffort {
		return nil, &MissingError{w.Missing}
	}
	sockets := version < withResolveUnix && !namesSocket(p.Write)
	if w.Filter, err = filter(p.Network, sockets); err != nil {
		return nil, err
	}
	if version == 0 {
		return w, nil
	}
	if w.Ruleset, err = ruleset(p, version); err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	return w, nil
}

// missing returns what a version of Landlock, 0 is none, cannot limit of a policy.
func missing(p Policy, version int) (parts []string) {
	switch {
	case version == 0:
		parts = append(parts, "files (the kernel has no Landlock, 5.13 or newer has)")
	case version < withTruncate:
		parts = append(parts, "that files are cut short (Linux 6.2 can)")
	}
	if p.Network == OnlyByProxy && version < withTCP {
		parts = append(parts, "TCP (Linux 6.7 can)")
	}
	if version < withScopes {
		parts = append(parts, "signals and abstract sockets (Linux 6.12 can)")
	}
	return parts
}

// namesSocket reports whether one of the paths is a socket.
func namesSocket(paths []string) bool {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
			return true
		}
	}
	return false
}

func ruleset(p Policy, version int) (*os.File, error) {
	all := landlock.RulesetAttr{HandledAccessFS: readRights | writeRights}
	for _, later := range []struct {
		version int
		right   uint64
	}{{withRefer, landlock.AccessFSRefer}, {withTruncate, landlock.AccessFSTruncate}, {withIoctl, landlock.AccessFSIoctlDev}, {withResolveUnix, landlock.AccessFSResolveUnix}} {
		if version >= later.version {
			all.HandledAccessFS |= later.right
		}
	}
	if p.Network == OnlyByProxy && version >= withTCP {
		all.HandledAccessNet = landlock.AccessNetConnectTCP
	}
	if version >= withScopes {
		all.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	fd, err := landlock.LandlockCreateRuleset(&all, 0)
	if err != nil {
		return nil, err
	}
	rules := os.NewFile(uintptr(fd), "landlock")
	err = errors.Join(allow(fd, p.Read, readRights), allow(fd, p.Write, all.HandledAccessFS))
	if err == nil && all.HandledAccessNet != 0 {
		err = landlock.LandlockAddNetPortRule(fd, &landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(p.Proxy)}, 0)
	}
	if err != nil {
		rules.Close()
		return nil, err
	}
	return rules, nil
}

// allow adds rules for paths. What is not there cannot be allowed.
func allow(rules int, paths []string, rights uint64) error {
	for _, path := range paths {
		if err := allowOne(rules, path, rights); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func allowOne(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	return landlock.LandlockAddPathBeneathRule(rules, &landlock.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd}, 0)
}
