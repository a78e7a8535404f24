// Command upstream is the cheapest MCP server there can be: it answers
// tools/call with its arguments as they came and everything else with what a
// handshake needs. What a proxy adds is then nearly all there is to measure. With
// -tools it has so many tools instead, with -listing those of a file.
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
