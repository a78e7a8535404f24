// Command fakemcp is an MCP server that tests run as a real upstream. It offers
// tools that show what passed through a proxy, it decorates everything it sends
// with members no client knows, and on request it misbehaves in one of the ways
// listed by -faults.
//
// It shares no code with the proxy and none with an SDK: it builds every message
// as text, so that what a test asserts is what went over the wire.
//
// Read next: server.go (a message comes in), tools.go (what it can do),
// faults.go (what it can do wrong).
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

// run serves until the client leaves, a signal comes or a fault ends it. It does
// not return: every way out goes through exit, which writes the ledger.
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
	// Some faults cannot be stopped politely. Should a test die with its cleanup,
	// this is what keeps the machine tidy.
	time.AfterFunc(cfg.maxLife, func() { f.exit(9, "max-life") })
	f.start()
	switch {
	case cfg.http != "":
		err = serveHTTP(f, cfg.http)
	default:
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

// exit ends the process and says why in the ledger.
func (f *fake) exit(code int, reason string) {
	f.ledger.add("exit %s", reason)
	os.Exit(code)
}
