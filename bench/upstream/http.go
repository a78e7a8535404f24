package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
)

// serveHTTP is the same server over HTTP. It prints its URL, and ends with its
// stdin.
func serveHTTP() {
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
	parts := answer(body)
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
