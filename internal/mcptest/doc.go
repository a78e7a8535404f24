// Package mcptest lets black-box tests run the real thing: it builds the proxy
// and fakemcp, starts them, speaks raw JSON lines to them and sees that nothing
// is left behind.
//
// A test starts a program as a host would and talks to it:
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
//
//	func TestEcho(t *testing.T) {
//		host := mcptest.Start(t, mcptest.HostOptions{
//			Args: []string{mcptest.Dynmcp(t), "--", mcptest.Fake(t)},
//		})
//		host.Initialize("2025-11-25", nil)
//		got := host.Tool("echo", `{"n":1.0}`)
//	}
//
// Nothing here knows MCP beyond its envelope, and nothing decodes what it need
// not, so that a test can compare bytes. Waiting is done on what arrives, under a
// watchdog that fails the test with everything seen so far; there are no sleeps.
//
// ServeFake and Client do the same over HTTP, Talk over a pipe in memory.
//
// Read next: process.go (a child and its end), conn.go (what is said to it),
// message.go (what comes back), fakemcp (the upstream; -h and -faults).
package mcptest
