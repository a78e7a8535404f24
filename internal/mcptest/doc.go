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
// What nobody announces is polled for with Eventually. That something does not
// happen is shown by what comes behind it, not by a pause.
//
// ServeFake and Client do the same over HTTP, Talk over a pipe in memory. StartAuthServer
// puts an authorization server in front of what serves HTTP.
//
// What recurs in the tests of all packages:
//
//   - A fake is fakemcp as an upstream. Its ledger is a file with a line for all
//     that happened to it, its faults are what it does wrong, grease is what it adds
//     to every message that no client knows. A gate holds an answer of it back.
//   - A marker is an environment entry by which the processes that one process
//     started are found, wherever they are now.
//   - The stage of package aggregator's transcripts (testdata/*.txtar) is a real
//     aggregator with actors around it: scripted hosts and upstreams.
//   - A puppet, in transports/upstream, is an upstream in memory that says what the
//     test wants; a testHost, in transports/host, is a host that does.
//
// Read next: process.go (a child and its end), conn.go (what is said to it),
// message.go (what comes back), fakemcp (the upstream; -h and -faults), authserver.
package mcptest
