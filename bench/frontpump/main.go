// Command frontpump is the floor for any proxy for hosts over HTTP. With a URL it posts each body there
// and copies the answer back, over pooled connections. With a command it starts the command, writes
// each body to its stdin as a line, and answers with the line that has the same id. It checks nothing,
// and has neither sessions nor event streams. It prints its own URL.
package main

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/bench/internal/echo"
	"github.com/dynmcp/dynmcp/bench/internal/pipes"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	var handler http.Handler
	if strings.HasPrefix(os.Args[1], "http://") {
		handler = forward(os.Args[1])
	} else if handler, err = start(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
	os.Stdout.WriteString("http://" + listener.Addr().String() + "/mcp\n")
	log.Fatal(http.Serve(listener, handler))
}

// forward returns a handler that posts to url.
func forward(url string) http.Handler {
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The transport may still read a body after the answer has arrived, so r.Body cannot be passed.
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		req.Header["Content-Type"], req.Header["Accept"] = r.Header["Content-Type"], r.Header["Accept"]
		resp, err := transport.RoundTrip(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header()["Content-Type"], w.Header()["Content-Length"] = resp.Header["Content-Type"], resp.Header["Content-Length"]
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // the host may be gone
	})
}

// A child is a server on pipes, and the requests that wait for its answers.
type child struct {
	writing sync.Mutex // lines must not mix
	stdin   *os.File

	mu      sync.Mutex
	waiting map[string]chan []byte
}

// start starts a command.
func start(argv []string) (*child, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, out, err := pipes.Start(cmd)
	if err != nil {
		return nil, err
	}
	c := &child{stdin: in, waiting: map[string]chan []byte{}}
	go c.read(pipes.NewReader(out, true))
	return c, nil
}

func (c *child) read(out *pipes.Reader) {
	for {
		line, err := out.Next()
		if err != nil {
			log.Fatal(err)
		}
		id := echo.Between(line[:min(len(line), 64)], `"id":`, ",}")
		c.mu.Lock()
		answered := c.waiting[string(id)]
		delete(c.waiting, string(id))
		c.mu.Unlock()
		if answered != nil {
			answered <- bytes.Clone(line)
		}
	}
}

// ServeHTTP implements http.Handler.
func (c *child) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := make([]byte, r.ContentLength, r.ContentLength+1)
	if _, err := io.ReadFull(r.Body, line); err != nil {
		return
	}
	line = append(bytes.TrimSuffix(line, []byte("\n")), '\n')
	id := echo.Between(line[:min(len(line), 64)], `"id":`, ",}")
	answered := make(chan []byte, 1)
	if id != nil {
		c.mu.Lock()
		c.waiting[string(id)] = answered
		c.mu.Unlock()
	}
	c.writing.Lock()
	_, err := c.stdin.Write(line)
	c.writing.Unlock()
	if err != nil {
		log.Fatal(err)
	}
	if id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := <-answered
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = w.Write(answer) // the host may be gone
}
