package mcptest

import "testing"

// A Host is a program that was started with pipes, and the host's end of the connection.
type Host struct {
	*Process
	*Conn
}

// Start starts a program. The end of the test closes its stdin and waits for its exit.
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

// StartDynmcp starts dynmcp with these arguments.
func StartDynmcp(t testing.TB, args ...string) *Host {
	t.Helper()
	return Start(t, HostOptions{Args: append([]string{Dynmcp(t)}, args...)})
}
