// Command fakeauth runs the authorization server of package authserver on a free loopback port, and
// prints its URL on standard error. Its argument is authserver.ServerOptions in JSON. It ends by a signal,
// or after an hour.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest/authserver"
)

func main() {
	log.SetFlags(0)
	var opts authserver.ServerOptions
	if len(os.Args) != 2 {
		log.Fatal("usage: fakeauth OPTIONS")
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &opts); err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	fmt.Fprintf(os.Stderr, "listening %s\n", base)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		select {
		case <-signals:
		case <-time.After(time.Hour):
		}
		os.Exit(143)
	}()
	log.Fatal(http.Serve(l, authserver.New(base, opts)))
}
