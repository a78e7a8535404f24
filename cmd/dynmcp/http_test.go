package main_test

import (
	"net"
	"testing"
)

// nobodyListens is the URL of a server that is not there.
func nobodyListens(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/mcp"
}
