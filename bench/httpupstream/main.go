// Command httpupstream is the server of ../upstream over HTTP. It is a separate program because
// net/http makes the start of a program longer.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/dynmcp/dynmcp/bench/internal/echo"
)

// main prints the server's URL. It ends with its stdin.
func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	os.Stdout.WriteString("http://" + listener.Addr().String() + "/mcp\n")
	log.Fatal(http.Serve(listener, http.HandlerFunc(handle)))
}

func handle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.ContentLength < 0 {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	parts := echo.Answer(body)
	if parts[0] == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(parts[0])+len(parts[1])))
	for _, part := range parts {
		_, _ = w.Write(part)
	}
}
