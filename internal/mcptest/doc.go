// Package mcptest is for black-box tests: it builds dynmcp and fakemcp, starts them, exchanges raw
// JSON lines with them, and checks that no process is left behind.
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
// The package knows only the envelope of MCP and decodes as little as possible, so that tests can
// compare bytes. Tests wait for messages and never sleep; when the watchdog expires, the test fails
// with everything received so far. Eventually polls for states without an event. To show that
// something does not happen, a test waits for a later event.
//
// ServeFake and Client do the same over HTTP, Talk over a pipe in memory. StartAuthServer puts an
// authorization server in front of an HTTP server.
//
// Terms in the tests of all packages:
//
//   - A fake is fakemcp as an upstream. Its ledger is a file with a line for each event, its faults
//     are its ways to misbehave, grease is the unknown members that it adds to every message. A
//     gate delays an answer.
//   - A marker is an environment entry that identifies a process and its descendants, whatever
//     their parent is.
//   - The stage of package aggregator's transcripts (testdata/*.txtar) is a real
//     aggregator with actors around it: scripted hosts and upstreams.
//   - A puppet, in transports/upstream, is an upstream in memory that the test scripts; a testHost,
//     in transports/host, is such a host.
//
// Read next: process.go (a child and its end), conn.go (messages to it), message.go (messages from
// it), fakemcp (the upstream; -h and -faults), authserver.
package mcptest
