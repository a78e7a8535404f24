// Command fakemcp is an MCP server that tests run as a real upstream. Its tools show which bytes
// passed through a proxy, it adds unknown members to every message, and on request it misbehaves in
// one of the ways that -faults lists.
//
// It shares no code with the proxy or an SDK: it builds every message as text, so that tests compare
// the bytes on the wire.
//
// Read next: server.go (incoming messages), tools.go, faults.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	cfg, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fakemcp:", err)
		os.Exit(2)
	case cfg.listFaults:
		printFaults(os.Stdout)
	case cfg.idle != "":
		idle(cfg)
	default:
		run(cfg)
	}
}

// run serves until the client disconnects, a signal arrives or a fault ends the process. It does not
// return: every end goes through exit, which writes the ledger.
func run(cfg config) {
	f, err := newFake(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakemcp:", err)
		os.Exit(2)
	}
	f.ledger.add("start %d", os.Getpid())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go f.obey(signals)
	// Some faults ignore the end of stdin and signals. This ends the process if the test has died
	// without its cleanup.
	time.AfterFunc(cfg.maxLife, func() { f.exit(9, "max-life") })
	f.start()
	if cfg.http != "" {
		err = serveHTTP(f, cfg.http)
	} else {
		err = serveStdio(f, os.Stdin)
	}
	f.exit(1, fmt.Sprint(err))
}

func (f *fake) obey(signals <-chan os.Signal) {
	for s := range signals {
		if f.ignoreTerm.Load() {
			f.ledger.add("ignored %v", s)
			continue
		}
		f.exit(143, s.String())
	}
}

// exit writes the reason to the ledger and ends the process.
func (f *fake) exit(code int, reason string) {
	f.ledger.add("exit %s", reason)
	os.Exit(code)
}
