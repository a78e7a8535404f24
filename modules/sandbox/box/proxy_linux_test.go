package box

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A name that leads to an address of this machine is refused, whatever the range: a rented server has
// a public one.
func TestAddressesOfThisMachine(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread, with its namespace, ends with the goroutine
		if err := loopback([]byte{8, 8, 4, 4}); err != nil {
			t.Logf("not here: %v", err)
			return
		}
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		for name, c := range map[string]struct {
			address, rule string
			allowed       bool
		}{
			"an interface's address":        {"8.8.4.4", "api.example.com", false},
			"another of a loopback network": {"8.8.4.9", "api.example.com", false},
			"one that the entry names":      {"8.8.4.4", "8.8.4.4", true},
		} {
			var why string
			p := &proxy{denied: func(text string) { why = text }, resolver: names{"api.example.com": c.address}}
			for _, host := range []string{"api.example.com", c.rule} {
				r, err := parseRule(net.JoinHostPort(host, strconv.Itoa(port)))
				if err != nil {
					t.Error(err)
					return
				}
				p.rules = append(p.rules, r)
			}
			conn, err := p.dial(t.Context(), net.JoinHostPort("api.example.com", strconv.Itoa(port)))
			if err == nil {
				conn.Close()
			}
			if denial, refused := errors.AsType[*deniedError](err); refused == c.allowed || refused && (denial.why != why || !strings.Contains(why, "or of this machine")) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		conn, err := net.Dial("tcp", net.JoinHostPort("8.8.4.4", strconv.Itoa(port)))
		if err != nil || !leadsBack(conn) {
			t.Errorf("a connection to this machine: %v", err)
		}
	}()
	<-done
}

// loopback gives this thread a network of its own, whose loopback interface has an address.
func loopback(address []byte) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	for _, set := range []struct {
		number uint
		fill   func() error
	}{
		{unix.SIOCSIFADDR, func() error { return request.SetInet4Addr(address) }},
		{unix.SIOCSIFNETMASK, func() error { return request.SetInet4Addr([]byte{255, 255, 255, 0}) }},
		{unix.SIOCSIFFLAGS, func() error { request.SetUint16(unix.IFF_UP); return nil }},
	} {
		if err := errors.Join(set.fill(), unix.IoctlIfreq(fd, set.number, request)); err != nil {
			return err
		}
	}
	return nil
}
