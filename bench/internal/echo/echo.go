// Package echo is what the servers of a benchmark answer, as cheaply as it can be.
package echo

import "bytes"

// Answer returns an answer in two pieces. What it is to echo stays where it is: the
// head of the answer is written over the request's, which is longer.
func Answer(line []byte) [2][]byte {
	head := line[:min(len(line), 200)]
	id := Between(head, `"id":`, ",}")
	if id == nil {
		return [2][]byte{} // a notification
	}
	answer := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	switch {
	case bytes.Contains(head, []byte(`"tools/call"`)):
		answer = append(answer, `,"result":{"content":[{"type":"text","text":`...)
		// The driver puts nothing behind the text that holds a quote.
		start, end := bytes.Index(line, []byte(`"text":`))+len(`"text":`), bytes.LastIndexByte(line, '"')+1
		at := start - len(answer)
		copy(line[at:], answer)
		return [2][]byte{line[at:end], []byte("}]}}\n")}
	case bytes.Contains(head, []byte(`"initialize"`)):
		answer = append(answer, `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"upstream","version":"1"}}}`...)
	case bytes.Contains(head, []byte(`"tools/list"`)):
		answer = append(answer, `,"result":{"tools":[{"name":"echo","description":"Answer the text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"bytes":{"type":"integer"}}}}]}}`...)
	case bytes.Contains(head, []byte(`"ping"`)):
		answer = append(answer, `,"result":{}}`...)
	default:
		answer = append(answer, `,"error":{"code":-32601,"message":"unknown method"}}`...)
	}
	return [2][]byte{answer, []byte("\n")}
}

// Between returns what follows key, up to a byte of ends.
func Between(line []byte, key, ends string) []byte {
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
