package cli

import "runtime/debug"

// Version is dynmcp's version. The tag of a release must be "v" and this version.
const Version = "0.3.0"

// Released reports whether this is a build of the tag of Version: of its commit, or of the module.
func Released() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && info.Main.Version == "v"+Version
}
