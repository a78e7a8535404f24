// Command upstream is the cheapest MCP server there can be: it answers
// tools/call with its arguments as they came and everything else with what a
// handshake needs. What a proxy adds is then nearly all there is to measure.
package main

import (
	"bufio"
	"bytes"
	"os"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return
		}
		answer(out, line)
		line = line[:0]
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

func answer(out *bufio.Writer, line []byte) {
	id := between(line, `"id":`, ",}")
	if id == nil {
		return // a notification
	}
	out.WriteString(`{"jsonrpc":"2.0","id":`)
	out.Write(id)
	switch {
	case bytes.Contains(line, []byte(`"tools/call"`)):
		out.WriteString(`,"result":{"content":[{"type":"text","text":`)
		out.Write(text(line))
		out.WriteString("}]}}\n")
	case bytes.Contains(line, []byte(`"initialize"`)):
		out.WriteString(`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"}}}` + "\n")
	case bytes.Contains(line, []byte(`"tools/list"`)):
		out.WriteString(`,"result":{"tools":[{"name":"echo","description":"Answer the text.","inputSchema":{"type":"object"}}]}}` + "\n")
	case bytes.Contains(line, []byte(`"ping"`)):
		out.WriteString(`,"result":{}}` + "\n")
	default:
		out.WriteString(`,"error":{"code":-32601,"message":"unknown method"}}` + "\n")
	}
}

// text returns the value of the argument "text": the driver puts nothing
// behind it that holds a quote.
func text(line []byte) []byte {
	start := bytes.Index(line, []byte(`"text":`))
	end := bytes.LastIndexByte(line, '"')
	if start < 0 || end < start {
		return []byte(`""`)
	}
	return line[start+len(`"text":`) : end+1]
}

// between returns what follows key, up to a byte of ends.
func between(line []byte, key, ends string) []byte {
	start := bytes.Index(line, []byte(key))
	if start < 0 {
		return nil
	}
	rest := line[start+len(key):]
	end := bytes.IndexAny(rest, ends)
	if end < 0 {
		return nil
	}
	return rest[:end]
}
