package box

import "runtime"

// System returns the paths of the system that programs need to run: programs and libraries,
// certificates, names, and kernel information about the machine. Landlock refuses kernel
// information about other processes, such as /proc/PID/environ.
func System() []string {
	if runtime.GOOS == "darwin" {
		return macOS
	}
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/snap", "/gnu/store",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/debian_version", "/etc/fonts",
		"/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hostname", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/locale.alias", "/etc/localtime", "/etc/machine-id", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf",
		"/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/ssl", "/etc/timezone",
		"/run/resolvconf", "/run/systemd/resolve", "/var/lib/ca-certificates", "/var/lib/dbus/machine-id",
		"/proc", "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
	}
}

// Devices returns the devices that programs write to. Terminals are excluded: a server could
// open the user's terminal by its path and read the input.
func Devices() []string {
	return []string{"/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"}
}

var macOS = []string{
	"/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/nix/store", "/Applications", "/private/etc", "/private/var/db/timezone",
	"/private/var/db/dyld", "/private/var/select", "/private/var/run/resolv.conf", "/dev/fd",
}
