// Command upstream is an MCP server that uses as little time as possible, so that
// benchmarks measure the proxy. It answers tools/call with the text of the arguments, and
// supports the handshake. With -tools N it has N tools instead, and with -listing FILE
// those of a file.
package main

import (
	"os"
	"strconv"

	"github.com/dynmcp/dynmcp/bench/internal/echo"
	"github.com/dynmcp/dynmcp/bench/internal/pipes"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "-tools" {
		count, _ := strconv.Atoi(os.Args[2])
		serveTools(madeTools(count))
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "-listing" {
		list, err := os.ReadFile(os.Args[2])
		if err != nil {
			panic(err)
		}
		serveTools(list)
		return
	}
	r, w := pipes.NewReader(os.Stdin, false), pipes.NewWriter(os.Stdout, false)
	r.Idle = w.Flush
	for {
		line, err := r.Next()
		if err != nil {
			return
		}
		for _, part := range echo.Answer(line) {
			if w.Add(part) != nil {
				return
			}
		}
	}
}
