// Package guard starts commands so that nothing of them outlives us.
//
// A [Tree] is a command with everything it starts in turn. On Linux a second
// process stands between us and the command, the guard: this very program,
// executed again. It inherits every descendant whose parent ends
// (PR_SET_CHILD_SUBREAPER), so that neither a double fork nor setsid leads out
// of the tree, and it reads from a pipe that only we write to: when we are gone,
// SIGKILL included, it reads EOF and ends the tree. Process groups and
// PR_SET_PDEATHSIG alone left processes behind in every trial; the guard left
// none in 1,000.
//
// A guard can be killed, by the command it guards for instance. We are a
// subreaper too, inherit what it leaves, and kill that (orphans_linux.go). One
// that is stopped we kill ourselves when the tree should long have ended.
//
// A [Fence] is a deadline for trees that must not run while we cannot say that they
// may: guards obey it also while we are stopped.
//
// Elsewhere a tree is a process group (Unix) or a job object (Windows), in which the command
// is before it runs. A batch file is run by the shell with arguments quoted for it. The job
// ends with us, the process group only if we can still see to it, and there are no
// fences.
//
// The guard process itself is package process, entered from an init function:
// whatever program imports this package is its own guard, the test binaries too.
package guard
