//go:build unix

package gateway

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// Connections use at most half of the file descriptors.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	ln, err := Listen("127.0.0.1:0", false, false, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got, want := ln.(*listener).conns.most, int(min(uint64(limit.Cur), math.MaxInt32)/2); got != want {
		t.Errorf("the limit is %d connections with %d descriptors, want %d", got, limit.Cur, want)
	}
}

// Connections that are established before Close are accepted, because the system would reset them.
func TestCloseAcceptsEstablishedConnections(t *testing.T) {
	const rounds, count = 20, 4
	for range rounds {
		ln, err := Listen("127.0.0.1:0", false, false, 8)
		if err != nil {
			t.Fatal(err)
		}
		connect(t, ln, count)
		all := make(chan int, 1)
		go func() {
			accepted := 0
			for {
				conn, err := ln.Accept()
				if err != nil {
					all <- accepted
					return
				}
				conn.Close()
				accepted++
			}
		}()
		err = ln.Close() // before most are accepted
		if accepted := <-all; err != nil || accepted != count {
			t.Fatalf("%d of %d connections were accepted, %v", accepted, count, err)
		}
	}
}
