package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// Profile returns the policy in the language of macOS's sandbox, whose last matching rule wins.
// Paths have symbolic links resolved: /tmp is /private/tmp.
func (p Policy) Profile() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("(version 1)")
	say("(deny default)")
	say(`(import "system.sb")`) // files that every program loads
	say("(allow process-fork)")
	say("(allow process-info* signal (target same-sandbox))")
	say("(allow sysctl-read)")
	say("(allow ipc-posix-sem ipc-posix-shm)")
	say("(allow pseudo-tty)")
	say("(allow file-read-metadata)") // as on Linux, names and sizes are not hidden
	for _, service := range []string{
		"com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.system.opendirectoryd.libinfo",
		"com.apple.system.logger", "com.apple.system.notification_center", "com.apple.trustd", "com.apple.trustd.agent",
	} {
		say("(allow mach-lookup (global-name %s))", quote(service))
	}
	for _, path := range Resolved(p.Read) {
		say("(allow file-read* file-map-executable process-exec* (subpath %s))", quote(path))
	}
	for _, path := range Resolved(p.Write) {
		say("(allow file-read* file-write* file-map-executable process-exec* file-ioctl (subpath %s))", quote(path))
	}
	p.profileNetwork(say)
	return b.String()
}

func (p Policy) profileNetwork(say func(format string, args ...any)) {
	switch p.Network {
	case AllNetwork:
		say("(allow network* system-socket)")
		say("(deny network-outbound (remote unix-socket))")
		say("(allow network-outbound (literal %s))", quote("/private/var/run/mDNSResponder"))
		for _, path := range Resolved(p.Write) {
			say("(allow network-outbound (subpath %s))", quote(path))
		}
	case OnlyByProxy:
		say("(allow system-socket)")
		say("(allow network-outbound (remote tcp %s))", quote("localhost:"+strconv.Itoa(int(p.Proxy))))
	}
}

// quote returns a string of the language, whose dialect of Scheme has no other escapes.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
