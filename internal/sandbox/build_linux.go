package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// The access rights of Landlock: those of its first version, and the version that added each
// later one (landlock(7)).
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM

	withRefer       = 2 // files move between directories
	withTruncate    = 3
	withTCP         = 4
	withIoctl       = 5
	withScopes      = 6 // signals, abstract sockets
	withResolveUnix = 9 // sockets that are files
)

// fileRights are the rights that a rule for a file that is not a directory may have.
const fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

// Begin makes the restrictions of a policy with an empty ruleset, which can be passed to the guard.
func Begin(p Policy) (*Restrictions, error) {
	version := landlockVersion()
	w := &Restrictions{Missing: p.Missing()}
	if len(w.Missing) > 0 && !p.BestEffort {
		return nil, &MissingError{w.Missing}
	}
	if version == 0 {
		return w, nil
	}
	handled := handledBy(p, version)
	fd, err := createRuleset(&handled, unsafe.Sizeof(handled), 0)
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	w.Ruleset = os.NewFile(uintptr(fd), "landlock")
	return w, nil
}

// Build adds the rules of a policy, and makes the filter.
func (w *Restrictions) Build(p Policy) (err error) {
	version := landlockVersion()
	if w.Ruleset != nil {
		if err := addRules(w.Ruleset, p, handledBy(p, version)); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if w.Filter = guard.NoFilter; hasFilters() {
		w.Filter, err = filter(p, version)
	}
	return err
}

// Missing describes the parts of the policy that this system cannot enforce. Landlock can limit
// TCP from version 4 on; before that, only the gate does.
func (p Policy) Missing() []string {
	return p.missing(landlockVersion(), hasFilters(), HasNotifications())
}

// missing is Missing for a system with a version of Landlock, filters and notifications.
func (p Policy) missing(version int, filters, notifications bool) (parts []string) {
	switch {
	case version == 0:
		parts = append(parts, "files (the kernel has no Landlock, 5.13 or newer has)")
	case version < withTruncate:
		parts = append(parts, "that files are cut short (Linux 6.2 can)")
	}
	if version < withScopes {
		parts = append(parts, "signals and abstract sockets (Linux 6.12 can)")
	}
	if !filters {
		parts = append(parts, "system calls and kinds of sockets (the kernel has no seccomp filters)")
	}
	switch {
	case p.Network == NoNetwork && !filters && version < withTCP:
		parts = append(parts, "connections (Linux 6.7 can)")
	case p.Network == OnlyByProxy && !notifications:
		parts = append(parts, "connections around its proxy (Linux 5.0 can, with seccomp filters)")
	}
	return parts
}

// hasFilters reports whether the kernel takes seccomp filters. It then fails with EFAULT,
// because it cannot read one.
func hasFilters() bool {
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0)
	return errno == unix.EFAULT && archOf[runtime.GOARCH] != 0
}

// HasNotifications reports whether the kernel has user notifications of seccomp (seccomp_unotify(2)).
func HasNotifications() bool {
	verdict := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&verdict)))
	return errno == 0 && hasFilters()
}

// namesSocket reports whether one of the paths is a socket.
func namesSocket(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().Type() == os.ModeSocket
	})
}

// handledBy returns the accesses that a ruleset forbids unless a rule allows them.
func handledBy(p Policy, version int) unix.LandlockRulesetAttr {
	all := unix.LandlockRulesetAttr{Handled_access_fs: readRights | writeRights}
	for since, right := range map[int]uint64{
		withRefer:       unix.LANDLOCK_ACCESS_FS_REFER,
		withTruncate:    unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		withIoctl:       unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
		withResolveUnix: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
	} {
		if version >= since {
			all.Handled_access_fs |= right
		}
	}
	if p.Network != AllNetwork && version >= withTCP {
		all.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= withScopes {
		all.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return all
}

func addRules(ruleset *os.File, p Policy, all unix.LandlockRulesetAttr) error {
	fd := int(ruleset.Fd())
	err := errors.Join(allow(fd, p.Read, readRights), allow(fd, p.Write, all.Handled_access_fs))
	if err == nil && p.Network == OnlyByProxy && all.Handled_access_net != 0 {
		port := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(p.Proxy)} // struct landlock_net_port_attr
		err = addRule(fd, ruleNetPort, unsafe.Pointer(&port))
	}
	return err
}

// allow adds rules for paths. Missing files are skipped, as Landlock cannot allow them.
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
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	return addRule(rules, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule))
}

// ruleNetPort is LANDLOCK_RULE_NET_PORT.
const ruleNetPort = 2

// landlockVersion returns the kernel's version of Landlock, 0 if it is not built in or
// not enabled.
func landlockVersion() int {
	version, err := createRuleset(nil, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != nil {
		return 0
	}
	return version
}

func createRuleset(attr *unix.LandlockRulesetAttr, size, flags uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), size, flags)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func addRule(rules int, kind uintptr, rule unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), kind, uintptr(rule), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
