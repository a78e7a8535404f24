package mcptest

import "testing"

// A Host is a program started with pipes, and the host's side of the talk.
type Host struct {
	*Process
	*Conn
}

// Start starts a program and speaks first when told to. The test's end closes its
// stdin and sees it leave.
func Start(t testing.TB, opts HostOptions) *Host {
	t.Helper()
	p := start(t, opts)
	c := &Conn{t: t, in: p.stdout, out: p.stdin, on: opts.OnRequest, gone: p.exited, more: p.report}
	p.drains.Go(c.read)
	return &Host{p, c}
}

// StartFake starts fakemcp with these arguments.
func StartFake(t testing.TB, args ...string) *Host {
	t.Helper()
	return Start(t, HostOptions{Args: append([]string{Fake(t)}, args...)})
}

// StartDynmcp starts the proxy with these arguments.
func StartDynmcp(t testing.TB, args ...string) *Host {
	t.Helper()
	return Start(t, HostOptions{Args: append([]string{Dynmcp(t)}, args...)})
}
