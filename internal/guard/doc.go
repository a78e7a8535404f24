// Package guard starts commands so that no part of them outlives this process.
//
// A [Tree] is a command with everything it starts in turn. On Linux a guard process stands
// between this process and the command: this program, executed again. It inherits every
// descendant whose parent ends (PR_SET_CHILD_SUBREAPER), so neither a double fork nor setsid
// escapes from the tree. It also reads from a pipe that only this process
// writes to: when this process is gone, SIGKILL included, the guard reads EOF and ends the
// tree. Process groups and PR_SET_PDEATHSIG alone left processes behind in every trial; the
// guard left none in 1,000.
//
// A guard can be killed, by its own command for instance. This process is a subreaper too,
// inherits the processes that the guard leaves, and kills them (orphans_linux.go). It also
// kills a stopped guard whose tree should long have ended.
//
// A [Fence] is a deadline for trees that need permission to run: guards enforce it even
// while this process is stopped.
//
// Elsewhere a tree is a process group (Unix) or a job object (Windows) that the command
// joins before it runs. A batch file is run by the shell with arguments quoted for it. A job
// ends with this process, a process group only if this process can still end it, and there
// are no fences.
//
// The guard process is package child, which is entered from an init function: every program
// that imports this package can be its own guard, test binaries too.
package guard
