package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// startFaults change the process or its output before the first message is read.
var startFaults = []fault{
	{name: "exit-now", doc: "print three lines on stderr and exit with status 7", start: exitNow},
	{name: "exit-leak", doc: "like exit-now, printing the environment variable ARG too", start: exitLeak},
	{name: "fail-first", doc: "the first ARG starts (by the ledger) exit with status 7", start: failFirst},
	{name: "exit-at", doc: "exit with status 4 when message number ARG has been read", start: func(f *fake, arg string) { f.exitAt = number(arg, 1) }},
	{name: "banner", doc: "print ARG (3) lines of text on stdout before the first message", start: banner},
	{name: "bom", doc: "write a UTF-8 byte order mark before the first message", start: func(f *fake, _ string) { f.before("\ufeff") }},
	{name: "crlf", doc: "end every message with CR LF", start: func(f *fake, _ string) { f.out.end = "\r\n" }},
	{name: "blank", doc: "write two empty lines after every message", start: func(f *fake, _ string) { f.out.end = "\n\n \n" }},
	{name: "pretty", doc: "spread every message over several lines", start: func(f *fake, _ string) { f.out.form = indent }},
	{name: "stderr-spam", doc: "write ARG (16 MiB) bytes of lines on stderr before reading anything", start: stderrSpam},
	{name: "stderr-nonewline", doc: "write ARG (1 MiB) bytes on stderr without a line's end", start: stderrNoNewline},
	{name: "ignore-term", doc: "ignore SIGTERM and SIGINT", start: func(f *fake, _ string) { f.ignoreTerm.Store(true) }},
	{name: "ignore-eof", doc: "stay alive when stdin ends", start: func(f *fake, _ string) { f.ignoreEOF = true }},
	{name: "no-read-after-init", doc: "read nothing after initialize; SIGTERM still works", start: stopReading},
	{name: "close-stdin", doc: "close stdin after a call has been read; answers still come", start: closeStdin},
	{name: "double-fork", doc: "leave four descendants: in our group, ignoring SIGTERM, in a session of its own, and daemonised", start: doubleFork},
	{name: "bad-version", doc: "answer initialize with protocol version 2099-01-01", start: func(f *fake, _ string) { f.cfg.protocol = "2099-01-01" }},
	{name: "dup-uri", doc: "list the first resource twice", start: func(f *fake, _ string) { f.offer.repeat("resources") }},
	{name: "dup-tool", doc: "list the first tool twice", start: func(f *fake, _ string) { f.offer.repeat("tools") }},
	{name: "bad-entry", doc: "list tools that are a number, null, nameless, and named by a number", start: badEntries},
	{name: "malformed", doc: "list entries whose members have wrong types, in every list", start: malformedEntries},
}

func exitNow(f *fake, _ string) {
	fmt.Fprint(os.Stderr, "fakemcp: starting\nfakemcp: API_KEY is not set\nfakemcp: giving up\n")
	f.exit(7, "exit-now")
}

func exitLeak(f *fake, name string) {
	fmt.Fprintf(os.Stderr, "fakemcp: %s=%s was refused\n", name, os.Getenv(name))
	exitNow(f, "")
}

func failFirst(f *fake, arg string) {
	if f.ledger.count("start") <= number(arg, 1) {
		exitNow(f, "")
	}
}

// before adds text before the first message.
func (f *fake) before(text string) {
	earlier := f.preface
	f.preface = func() {
		if earlier != nil {
			earlier()
		}
		f.out.raw([]byte(text))
	}
}

// banner writes lines like those of real programs: prose, a log line, invalid JSON.
func banner(f *fake, arg string) {
	kinds := []string{"Fake MCP server running on stdio\n", "[info] loading config {\"a\":1}\n", "{not json\n"}
	var text strings.Builder
	for n := range number(arg, len(kinds)) {
		text.WriteString(kinds[n%len(kinds)])
	}
	f.before(text.String())
}

func indent(msg []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, msg, "", "  "); err != nil {
		return msg
	}
	return b.Bytes()
}

func stderrSpam(_ *fake, arg string) {
	line := []byte(strings.Repeat("spam ", 19) + "spam\n")
	for left := number(arg, 16<<20); left > 0; left -= len(line) {
		_, _ = os.Stderr.Write(line)
	}
}

func stderrNoNewline(_ *fake, arg string) {
	_, _ = os.Stderr.WriteString(strings.Repeat("x", number(arg, 1<<20)))
}

func stopReading(f *fake, _ string) {
	f.afterRead = func(c *call) {
		if c.Method == "initialize" {
			forever()
		}
	}
}

// closeStdin closes stdin on the reading goroutine: a pipe stays open while a read of it blocks.
func closeStdin(f *fake, _ string) {
	f.afterRead = func(c *call) {
		if c.Method == "tools/call" {
			_ = os.Stdin.Close()
			forever()
		}
	}
}

func doubleFork(f *fake, _ string) {
	for _, child := range []struct {
		mode       string
		ownSession bool
	}{{"plain", false}, {"ignore-term", false}, {"ignore-term", true}, {"fork", false}} {
		if _, err := f.spawn(child.mode, child.ownSession, ""); err != nil {
			fmt.Fprintln(os.Stderr, "fakemcp:", err)
		}
	}
}

func (o *offer) repeat(list string) { o.add(list, o.lists[list][0]) }

func badEntries(f *fake, _ string) {
	for _, raw := range []string{`7`, `null`, `{"description":"nameless"}`, `{"name":7,"inputSchema":{"type":"object"}}`} {
		f.offer.add("tools", entry{raw: json.RawMessage(raw)})
	}
}

// malformedEntries adds entries to every list for which typed clients reject the list.
func malformedEntries(f *fake, _ string) {
	for list, entries := range map[string][]string{
		"tools": {
			`{"name":"m1","inputSchema":null}`, `{"name":"m2"}`, `{"name":"m3","inputSchema":[]}`, `{"name":"m4","inputSchema":"x"}`,
			`{"name":"m5","inputSchema":{"type":5}}`, `{"name":"m6","inputSchema":{"type":"string"}}`, `{"name":"m7","description":5,"inputSchema":{"type":"object"}}`,
			`{"name":"m8","annotations":"x","inputSchema":{"type":"object"}}`, `{"name":"m9","icons":5,"inputSchema":{"type":"object"}}`,
			// Typed clients accept these.
			`{"name":"f1","title":null,"inputSchema":{"properties":{"any":true,"none":false}}}`,
			`{"name":"f2","outputSchema":{"type":"array"},"inputSchema":{"type":"object"}}`,
		},
		"prompts": {
			`{"name":"m1","arguments":"x"}`, `{"name":"m2","title":[]}`, `{"name":"m3","arguments":[{"name":5}]}`, `{"name":5}`,
			`{"name":"f1","description":null,"arguments":[{"name":"a","required":null}]}`,
		},
		"resources": {
			`{"uri":"m:1","name":5}`, `{"uri":"m:2"}`, `{"uri":"m:3","name":"m","size":"12"}`, `{"uri":"m:4","name":"m","annotations":{"audience":"user"}}`,
			`{"uri":"m:5","name":"m","annotations":{"lastModified":"yesterday"}}`,
			`{"uri":"f:1","name":"f","mimeType":null,"size":1.5}`,
		},
		"resourceTemplates": {
			`{"uriTemplate":"m:1/{x}"}`, `{"uriTemplate":5,"name":"m"}`, `{"uriTemplate":"m:2/{x}","name":"m","_meta":[]}`,
			`{"uriTemplate":"f:{x}","name":"f","icons":null}`,
		},
	} {
		for _, raw := range entries {
			f.offer.add(list, entry{raw: json.RawMessage(raw)})
		}
	}
}
