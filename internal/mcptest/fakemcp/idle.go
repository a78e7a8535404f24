package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// idle is the main function of a spawned child, which sleeps. In mode fork it starts a grandchild in
// a session of its own and exits, like a daemon.
func idle(cfg config) {
	switch cfg.idle {
	case "fork":
		f, err := newFake(cfg)
		if err == nil {
			_, err = f.spawn("plain", true, "")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "fakemcp:", err)
			os.Exit(1)
		}
		return
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	}
	time.Sleep(cfg.maxLife)
}
