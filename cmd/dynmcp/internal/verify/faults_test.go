package verify

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
)

// A fault is what the proxy between dynmcp and a server does to the lines of one direction.
// It returns the lines that go on in the place of one.
type fault struct {
	name    string
	request bool // to the server, else from it
	apply   func() func(line string) []string
}

// change replaces what a pattern matches.
func change(name, pattern, with string) fault {
	re := regexp.MustCompile(pattern)
	return fault{name: name, apply: each(func(line string) []string { return []string{re.ReplaceAllString(line, with)} })}
}

// asked is a fault of requests.
func asked(f fault) fault {
	f.request = true
	return f
}

func each(apply func(string) []string) func() func(string) []string {
	return func() func(string) []string { return apply }
}

// repeat sends lines that contain a text so many times.
func repeat(name, text string, times int) fault {
	return fault{name: name, apply: each(func(line string) []string {
		if !strings.Contains(line, text) {
			return []string{line}
		}
		return slicesRepeat(line, times)
	})}
}

func slicesRepeat(line string, times int) (lines []string) {
	for range times {
		lines = append(lines, line)
	}
	return lines
}

// late sends the first line that contains a text behind the next one.
func late(name, text string) fault {
	return fault{name: name, apply: func() func(string) []string {
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
	change("a dropped member", `,"structuredContent":\{"n":1\.0`, `,"other":{"n":1.0`),
	change("a rounded number", `"big":9007199254740993`, `"big":9007199254740992`),
	change("a number in another form", `\{"n":1\.0`, `{"n":1`),
	change("another order of members", `"n":1\.0,"big":9007199254740993`, `"big":9007199254740993,"n":1.0`),
	change("a missing _meta", `,"_meta":\{"x":1\}`, ``),
	change("a member added", `,"_meta":\{"x":1\}`, `,"_meta":{"x":1,"y":2}`),
	change("an element dropped", `"list":\[1,2\]`, `"list":[1]`),
	change("elements reordered", `"list":\[1,2\]`, `"list":[2,1]`),
	change("space added", `"list":\[1,2\]`, `"list":[1, 2]`),
	change("an escape rewritten", `"text":"\\u00e9"`, `"text":"é"`),
	change("null for a missing member", `,"_meta":\{"x":1\}`, `,"_meta":{"x":1},"isError":null`),
	change("an answer cut short", `xxxxxxxxxx"`, `"`),
	change("isError dropped", `,"isError":true`, ``),
	change("another code of an error", `"code":-32042`, `"code":-32603`),
	change("another message of an error", `failed as asked`, `failed`),
	change("data of an error dropped", `"error":\{"data":.*,"message":"failed as asked"`, `"error":{"message":"failed as asked"`),
	change("an unknown tool that is called", `"error":\{[^}]*Unknown tool[^}]*\}`, `"result":{"content":[]}`),
	change("a lost page", `,"nextCursor":"[^"]*"`, ``),
	change("another description", `Generated tool 1`, `Generated tool one`),
	change("annotations dropped", `,"annotations":\{"readOnlyHint":true,"idempotentHint":true\}`, ``),
	change("an input schema with another type", `"type":"integer","default":3`, `"type":"number","default":3`),
	change("another text of a resource", `("contents":\[\{[^\]]*"text":")`, `${1}x`),
	change("another role of a prompt", `"role":"user"`, `"role":"assistant"`),
	change("instructions dropped", `"instructions":"[^"]*",`, ``),
	change("a capability dropped", `,"completions":\{\}`, ``),
	change("a title dropped", `,"title":"Fake"`, ``),
	change("progress with another value", `"progress":2\.0`, `"progress":2`),
	repeat("progress that is lost", "step 2", 0),
	repeat("progress that comes twice", "step 2", 2),
	late("progress that is reordered", "step 1"),
	repeat("a notification that is lost", `"notifications/message"`, 0),
	repeat("a notification that comes twice", `"notifications/message"`, 2),
	late("a notification behind the answer that it preceded", `"notifications/message"`),
	repeat("a change of a list that is not announced", `tools/list_changed`, 0),
	repeat("an answer that is lost", "xxxxxxxxxx", 0),
	asked(repeat("a doubled call", `"name":"log"`, 2)),
	asked(change("a dropped argument", `\{"s":"a"\}`, `{}`)),
	asked(change("a rounded argument", `9007199254740993`, `9007199254740992`)),
	asked(change("a dropped progress token", `"progressToken":`, `"token":`)),
	asked(change("another resource", `"uri":"fake://fakemcp/blob"`, `"uri":"fake://fakemcp/text"`)),
}

// proxy runs a command, and does what a fault says to what passes.
func proxy(name string, args []string) int {
	var in, out = each(func(line string) []string { return []string{line} })(), each(func(line string) []string { return []string{line} })()
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
