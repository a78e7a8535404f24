// Command pump is the floor for any proxy on pipes: it starts the command it
// is given, rewrites the id and the tool's name of every message, and moves
// the bytes. It parses nothing, checks nothing and survives nothing.
package main

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		move(os.Stdout, stdout, func(line, out []byte) []byte {
			return replace(out, line, `"id":9`, `"id":`)
		})
		os.Exit(0)
	}()
	move(stdin, os.Stdin, func(line, out []byte) []byte {
		out = replace(out, line, `"id":`, `"id":9`)
		return rename(out)
	})
	stdin.Close()
	_ = cmd.Wait() // it ends because its stdin did
}

// move passes lines on, rewritten, until src ends.
func move(dst io.Writer, src io.Reader, rewrite func(line, out []byte) []byte) {
	in := bufio.NewReaderSize(src, 1<<20)
	to := bufio.NewWriterSize(dst, 1<<20)
	var line, out []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			to.Flush()
			return
		}
		out = rewrite(line, out[:0])
		to.Write(out)
		line = line[:0]
		if in.Buffered() == 0 {
			to.Flush()
		}
	}
}

// replace appends line to out with the first old, which stands near the
// beginning, replaced.
func replace(out, line []byte, old, with string) []byte {
	i := bytes.Index(line[:min(len(line), 64)], []byte(old))
	if i < 0 {
		return append(out, line...)
	}
	out = append(out, line[:i]...)
	out = append(out, with...)
	return append(out, line[i+len(old):]...)
}

// rename strips what stands for the server from the tool's name, in place.
func rename(line []byte) []byte {
	i := bytes.Index(line[:min(len(line), 160)], []byte(`"upstream/`))
	if i < 0 {
		return line
	}
	return append(line[:i+1], line[i+len(`"upstream/`):]...)
}
