//go:build e2e

package verify

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A fault is a change that the proxy between dynmcp and a server makes to the lines of one
// direction.
type fault struct {
	name    string
	found   string                            // where verify must find it: what was compared, the answer, a JSON pointer, how it differs
	request bool                              // changes lines to the server, otherwise lines from it
	apply   func() func(line string) []string // the inner function returns the lines to send in place of line
}

// change replaces the matches of a pattern.
func change(name, found, pattern, with string) fault {
	re := regexp.MustCompile(pattern)
	return fault{name: name, found: found, apply: each(func(line string) []string { return []string{re.ReplaceAllString(line, with)} })}
}

// asked applies a fault to requests.
func asked(f fault) fault {
	f.request = true
	return f
}

func each(apply func(string) []string) func() func(string) []string {
	return func() func(string) []string { return apply }
}

// repeat sends each line that contains text the given number of times.
func repeat(name, found, text string, times int) fault {
	return fault{name: name, found: found, apply: each(func(line string) []string {
		if !strings.Contains(line, text) {
			return []string{line}
		}
		return slices.Repeat([]string{line}, times)
	})}
}

// late sends the first line that contains text after the next line.
func late(name, found, text string) fault {
	return fault{name: name, found: found, apply: func() func(string) []string {
		held, done := "", false
		return func(line string) []string {
			switch {
			case held != "":
				first := held
				held = ""
				return []string{line, first}
			case !done && strings.Contains(line, text):
				held, done = line, true
				return nil
			}
			return []string{line}
		}
	}}
}

var faults = []fault{
	// members
	change("a dropped member", "tools raw /structuredContent missing", `,"structuredContent":\{[^}]*\}`, ``),
	change("a missing _meta", "tools raw /_meta missing", `,"_meta":\{"x":1\}`, ``),
	change("a member added", "tools raw /_meta/y added", `,"_meta":\{"x":1\}`, `,"_meta":{"x":1,"y":2}`),
	change("a null member dropped", "tools raw /structuredContent/none missing", `,"none":null`, ``),
	change("null for a missing member", "tools raw /isError added", `,"_meta":\{"x":1\}`, `,"_meta":{"x":1},"isError":null`),
	change("a member that is there twice", "tools raw /_meta a member that is there twice", `"_meta":\{"x":1\}`, `"_meta":{"x":1,"x":1}`),
	change("another order of members", "tools raw /structuredContent order of members", `"n":1\.0,"big":9007199254740993`, `"big":9007199254740993,"n":1.0`),
	change("isError dropped", "tools tool_error /isError missing", `,"isError":true`, ``),
	// values
	change("a rounded number", "tools raw /structuredContent/big value", `"big":9007199254740993`, `"big":9007199254740992`),
	change("a trailing zero dropped", "tools raw /structuredContent/n value", `\{"n":1\.0`, `{"n":1`),
	change("space added", "tools raw /structuredContent/list space between tokens", `"list":\[1,2\]`, `"list":[1, 2]`),
	change("an escape rewritten", "tools raw /content/1/text value", `"text":"\\u00e9"`, `"text":"é"`),
	change("a text cut short", "tools big /content/0/text value", `xxxxxxxxxx"`, `"`),
	change("another mimeType", "resources fake://fakemcp/text /contents/0/mimeType value", `("contents":\[.*)"mimeType":"text/plain"`, `${1}"mimeType":"text/html"`),
	change("another text of a resource", "resources fake://fakemcp/text /contents/0/text value", `("contents":\[\{[^\]]*"text":")`, `${1}x`),
	change("another role of a prompt", "prompts fakemcp.greet /messages/0/role value", `"role":"user"`, `"role":"assistant"`),
	// elements
	change("an element dropped", "tools raw /structuredContent/list/1 missing", `"list":\[1,2\]`, `"list":[1]`),
	change("elements reordered", "tools raw /structuredContent/list/0 value", `"list":\[1,2\]`, `"list":[2,1]`),
	change("a content block dropped", "tools raw /content/1 missing", `,\{"type":"text","text":"\\u00e9"\}`, ``),
	change("content blocks reordered", "tools raw /content/0/text value", `(\{"type":"text","text":"9007199254740993"\}),(\{"type":"text","text":"\\u00e9"\})`, `$2,$1`),
	// errors
	change("another code of an error", "tools fail /error/code value", `"code":-32042`, `"code":-32603`),
	change("another message of an error", "tools fail /error/message value", `failed as asked`, `failed`),
	change("data of an error dropped", "tools fail /error/data missing", `"error":\{"data":.*,"message":"failed as asked"`, `"error":{"message":"failed as asked"`),
	change("an unknown tool that is called", "errors unknown tool /error missing", `"error":\{[^}]*Unknown tool[^}]*\}`, `"result":{"content":[]}`),
	repeat("an answer that is lost", "tools big", "xxxxxxxxxx", 0),
	// lists
	change("a lost page", "lists tools/list", `,"nextCursor":"[^"]*"`, ``),
	change("another description", "lists tools/list /tool_001/description value", `Generated tool 1`, `Generated tool one`),
	change("annotations dropped", "lists tools/list /noted/annotations missing", `,"annotations":\{"readOnlyHint":true,"idempotentHint":true\}`, ``),
	change("an annotation dropped", "lists tools/list /noted/annotations/idempotentHint missing", `,"idempotentHint":true`, ``),
	change("an outputSchema dropped", "lists tools/list /noted/outputSchema missing", `,"outputSchema":\{"type":"object"\}`, ``),
	change("an input schema with another type", "lists tools/list /progress/inputSchema/properties/steps/type value", `"type":"integer","default":3`, `"type":"number","default":3`),
	change("a resource template dropped", "lists resources/templates/list /fake:~1~1fakemcp~1item~1{id} missing", `"resourceTemplates":\[.*\]`, `"resourceTemplates":[]`),
	change("arguments of a prompt reordered", "lists prompts/list /fakemcp.greet/arguments/0 order of members", `("required":true),("name":"who")`, `$2,$1`),
	// the handshake
	change("another protocol version", "handshake protocolVersion of the server", `"protocolVersion":"2025-11-25"`, `"protocolVersion":"2025-06-18"`),
	change("instructions dropped", "handshake instructions", `"instructions":"[^"]*",`, ``),
	change("a capability dropped", "handshake capabilities /completions missing", `,"completions":\{\}`, ``),
	change("another name of the server", "handshake serverInfo /name value", `"name":"fakemcp"`, `"name":"fake"`),
	change("a title dropped", "handshake serverInfo /title missing", `,"title":"Fake"`, ``),
	// progress and notifications
	change("progress with another value", "progress progress /1/params/progress value", `"progress":2\.0`, `"progress":2`),
	change("progress under another token", "progress progress /0 missing", `"progressToken":\d+`, `"progressToken":4711`),
	repeat("progress that is lost", "progress progress /2 missing", "step 2", 0),
	repeat("progress that comes twice", "progress progress /3 added", "step 2", 2),
	late("progress that is reordered", "progress progress /0/params/message value", "step 1"),
	late("progress after the result", "progress progress /2 missing", "step 3"),
	repeat("a notification that is lost", "notifications in order", `"notifications/message"`, 0),
	repeat("a notification that comes twice", "notifications in order", `"notifications/message"`, 2),
	late("a notification behind the answer that it preceded", "notifications in order", `"notifications/message"`),
	repeat("a change of a list that is not announced", "notifications notifications/tools/list_changed", `tools/list_changed`, 0),
	// requests
	asked(repeat("a doubled call", "notifications in order", `"name":"log"`, 2)),
	asked(change("a dropped argument", "tools echo /structuredContent/s missing", `\{"s":"a"\}`, `{}`)),
	asked(change("a rounded argument", "big numbers echo /structuredContent/n value", `9007199254740993`, `9007199254740992`)),
	asked(change("a dropped progress token", "progress progress /0 missing", `"progressToken":`, `"token":`)),
	asked(change("another resource", "resources fake://fakemcp/blob /contents/0", `"uri":"fake://fakemcp/blob"`, `"uri":"fake://fakemcp/text"`)),
	asked(repeat("a cancel that is lost", "cancellation the same call again /content/0/text value", `"notifications/cancelled"`, 0)),
}

// proxy runs a command with the fault called name applied to its streams.
func proxy(name string, args []string) int {
	pass := func(line string) []string { return []string{line} }
	in, out := pass, pass
	for _, f := range faults {
		switch {
		case f.name == name && f.request:
			in = f.apply()
		case f.name == name:
			out = f.apply()
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 2
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return 2
	}
	var wg sync.WaitGroup
	wg.Go(func() { pump(stdin, os.Stdin, in); stdin.Close() })
	pump(os.Stdout, stdout, out)
	os.Stdin.Close()
	if cmd.Wait() != nil {
		return 1
	}
	return 0
}

func pump(to io.Writer, from io.Reader, apply func(string) []string) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var text bytes.Buffer
		for _, one := range apply(strings.TrimSuffix(line, "\n")) {
			text.WriteString(one + "\n")
		}
		if _, err := to.Write(text.Bytes()); err != nil {
			return
		}
	}
}
