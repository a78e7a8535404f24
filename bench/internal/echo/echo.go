// Package echo makes the answers of benchmark servers, as cheaply as possible.
package echo

import "bytes"

// Answer returns the answer to a request in two pieces. The echoed text is not copied: the head of the
// answer overwrites the head of the request, which is longer.
func Answer(line []byte) [2][]byte {
	head := line[:min(len(line), 200)]
	id := Between(head, `"id":`, ",}")
	if id == nil {
		return [2][]byte{} // a notification
	}
	answer := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	switch {
	case bytes.Contains(head, []byte(`"tools/call"`)):
		result, end := plain, []byte("}]}}\n")
		if bytes.Contains(head, []byte(Structured+`"`)) {
			result, end = structured, []byte("},\"content\":[]}}\n")
		}
		answer = append(answer, result...)
		// After the text, the driver sends no quotes.
		start, stop := bytes.Index(line, []byte(`"text":`))+len(`"text":`), bytes.LastIndexByte(line, '"')+1
		at := start - len(answer)
		copy(line[at:], answer)
		return [2][]byte{line[at:stop], end}
	case bytes.Contains(head, []byte(`"initialize"`)):
		answer = append(answer, `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"upstream","version":"1"}}}`...)
	case bytes.Contains(head, []byte(`"tools/list"`)):
		answer = append(answer, `,"result":{"tools":[`+tool("echo")+`},`+tool(Structured)+`,"outputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}`...)
	case bytes.Contains(head, []byte(`"ping"`)):
		answer = append(answer, `,"result":{}}`...)
	default:
		answer = append(answer, `,"error":{"code":-32601,"message":"unknown method"}}`...)
	}
	return [2][]byte{answer, []byte("\n")}
}

// Structured is the name of a tool with structured results.
const Structured = "structured"

// The parts of results before the text.
const (
	plain      = `,"result":{"content":[{"type":"text","text":`
	structured = `,"result":{"structuredContent":{"text":`
)

// tool returns an entry of tools/list without its last brace. Its schema is of typical size: 61 % of
// real tools with three or more properties have a number among them.
func tool(name string) string {
	return `{"name":"` + name + `","description":"Answer the text.","inputSchema":{"type":"object","properties":{` +
		`"limit":{"type":"integer","minimum":1,"maximum":100,"default":30},"since":{"type":"string","format":"date"},` +
		`"labels":{"type":"array","items":{"type":"string"}},"draft":{"type":"boolean"},"text":{"type":"string"}},"required":["text"]}`
}

// Between returns the text after key, up to a byte of ends, nil if one is missing.
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
