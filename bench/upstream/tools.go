package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/dynmcp/dynmcp/bench/internal/echo"
	"github.com/dynmcp/dynmcp/bench/internal/pipes"
)

// madeTools returns count tools of about 350 bytes each.
func madeTools(count int) (list []byte) {
	for i := range count {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, `{"name":"tool_%05d","description":"Reads the records of department %d and returns those that match what is asked for, newest first.",`+
			`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"words to look for"},"limit":{"type":"integer","description":"how many to return"},`+
			`"since":{"type":"string","format":"date"}},"required":["query"]}}`, i, i)
	}
	return list
}

// serveTools runs a server with these tools. From a call of a tool on, it announces a
// changed list, and again each time the list was fetched. The next call stops that and
// returns how often the list was fetched. The list only really changes if madeTools made it.
func serveTools(list []byte) {
	version := bytes.Index(list, []byte("Reads the records"))
	r, w := pipes.NewReader(os.Stdin, false), pipes.NewWriter(os.Stdout, false)
	changing, fetched := false, 0
	announce := func() { _ = w.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")) }
	for {
		line, err := r.Next()
		if err != nil {
			return
		}
		head := line[:min(len(line), 200)]
		switch {
		case bytes.Contains(head, []byte(`"tools/list"`)):
			fetched++
			if version >= 0 {
				copy(list[version:], fmt.Sprintf("R%04d", fetched%10000)) // changes the list
			}
			_ = w.Add(append(append([]byte(`{"jsonrpc":"2.0","id":`), echo.Between(head, `"id":`, ",}")...), `,"result":{"tools":[`...))
			_ = w.Add(list)
			_ = w.Add([]byte("]}}\n"))
			if changing {
				announce()
			}
		case bytes.Contains(head, []byte(`"tools/call"`)):
			changing = !changing
			text := strconv.Itoa(fetched)
			fetched = 0
			_ = w.Add(append(append([]byte(`{"jsonrpc":"2.0","id":`), echo.Between(head, `"id":`, ",}")...), `,"result":{"content":[{"type":"text","text":"`+text+`"}]}}`+"\n"...))
			if changing {
				announce()
			}
		default:
			for _, part := range echo.Answer(bytes.Clone(line)) {
				_ = w.Add(part)
			}
		}
		if w.Flush() != nil {
			return
		}
	}
}
