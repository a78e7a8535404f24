// Command pump is the floor for any proxy on pipes: it starts a command, rewrites the id and the tool's
// name of every message, and moves the bytes. It reads and writes in place and enlarges its pipes; it
// neither parses nor checks anything, and handles no errors.
package main

import (
	"bytes"
	"log"
	"os"
	"os/exec"

	"github.com/dynmcp/dynmcp/bench/internal/pipes"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	in, out, err := pipes.Start(cmd)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		move(os.Stdout, out, toHost)
		os.Exit(0)
	}()
	move(in, os.Stdin, toUpstream)
	in.Close()
	_ = cmd.Wait() // it ends because its stdin did
}

// move passes lines on, rewritten, until src ends.
func move(dst, src *os.File, rewrite func([]byte) []byte) {
	r, w := pipes.NewReader(src, true), pipes.NewWriter(dst, true)
	r.Idle = w.Flush
	for {
		line, err := r.Next()
		if err != nil {
			return
		}
		if err := w.Add(rewrite(line)); err != nil {
			return
		}
	}
}

const id, prefix = `"id":`, `upstream/`

// toUpstream inserts a 9 before the id and removes the server from the tool's name. Only the bytes
// before the name move.
func toUpstream(line []byte) []byte {
	i := bytes.Index(line[:min(len(line), 64)], []byte(id))
	name := bytes.Index(line[:min(len(line), 160)], []byte(prefix))
	switch {
	case i < 0:
		return line
	case name < i:
		i += len(id)
		return append(append(append(make([]byte, 0, len(line)+1), line[:i]...), '9'), line[i:]...)
	}
	i += len(id)
	copy(line[i+len(prefix):], line[i:name])
	line[i+len(prefix)-1] = '9'
	copy(line[len(prefix)-1:], line[:i])
	return line[len(prefix)-1:]
}

// toHost removes the 9 from the id.
func toHost(line []byte) []byte {
	i := bytes.Index(line[:min(len(line), 64)], []byte(id+"9"))
	if i < 0 {
		return line
	}
	copy(line[1:], line[:i+len(id)])
	return line[1:]
}
