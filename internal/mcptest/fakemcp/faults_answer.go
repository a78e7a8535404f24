package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// answerFaults apply to calls: tools/call, or the method of -fault-on, of every tool or the one of
// -fault-tool. The tool fault applies one of them to a single call. Faults that write bytes other
// than messages are for stdio only.
var answerFaults = []fault{
	{name: "crash-call", doc: "exit with status 3 instead of answering", answer: crashCall},
	{name: "crash-after", doc: "answer, then exit with status 3", answer: crashAfter},
	{name: "partial", doc: "write ARG (half the) bytes of the answer, then exit with status 3", answer: partial},
	{name: "partial-hang", doc: "write ARG (half the) bytes of the answer, then nothing more", answer: partialHang},
	{name: "hang-call", doc: "never answer", answer: hangCall},
	{name: "late", doc: "answer only once the call has been cancelled", answer: late},
	{name: "twice", doc: "answer twice, the second time with another result", answer: twice},
	{name: "unknown-id", doc: "send an answer for a request nobody made, then the answer", answer: unknownID},
	{name: "string-id", doc: "answer with the id as a string", answer: stringID},
	{name: "null-id", doc: "answer with the id null", answer: nullID},
	{name: "noresult", doc: "answer with neither result nor error", answer: noResult},
	{name: "both", doc: "answer with result and error", answer: both},
	{name: "batch", doc: "send the answer in an array, behind a notification", answer: batch},
	{name: "late-progress", doc: "answer, then send progress for the call", answer: lateProgress},
	{name: "flood", doc: "send ARG (200000) log messages before the answer", answer: flood},
	{name: "flood-lc", doc: "send ARG (40000) tools/list_changed before the answer", answer: floodListChanged},
	{name: "huge", doc: "answer with a text of ARG (100 MiB) bytes", answer: huge},
	{name: "deep", doc: "answer with arrays nested ARG (1000000) deep", answer: deep},
	{name: "invalid-utf8", doc: "answer with a text that is not UTF-8", answer: invalidUTF8},
	{name: "garbage-mid", doc: "write lines that are no JSON-RPC around the answer", answer: garbageMid},
	{name: "glued", doc: "write a notification and the answer on one line", answer: glued},
	{name: "dribble", doc: "write the answer one byte at a time", answer: dribble},
	{name: "close-stdout", doc: "close stdout instead of answering, and live on", answer: closeStdout},
}

func crashCall(c *call, _ []byte, _ string) {
	fmt.Fprintln(os.Stderr, "fakemcp: panic: as asked")
	c.peer.fake.exit(3, "crash-call")
}

func crashAfter(c *call, msg []byte, _ string) {
	c.send(msg)
	c.peer.fake.exit(3, "crash-after")
}

func partial(c *call, msg []byte, arg string) {
	c.peer.fake.out.raw(msg[:min(len(msg), number(arg, len(msg)/2))])
	c.peer.fake.exit(3, "partial")
}

// partialHang keeps the lock, because any later message would complete the line.
func partialHang(c *call, msg []byte, arg string) {
	out := c.peer.fake.out
	out.mu.Lock() // and never unlocked
	_, _ = out.file.Write(msg[:min(len(msg), number(arg, len(msg)/2))])
}

func hangCall(c *call, _ []byte, _ string) { <-c.ctx.Done() }

func late(c *call, msg []byte, _ string) {
	<-c.ctx.Done()
	c.send(msg)
}

func twice(c *call, msg []byte, _ string) {
	c.send(msg)
	c.send(answer(c.ID, textResult("second answer", "")))
}

func unknownID(c *call, msg []byte, _ string) {
	c.send(answer(json.RawMessage("987654321"), textResult("for nobody", "")))
	c.send(answer(json.RawMessage(`"nobody"`), textResult("for nobody", "")))
	c.send(msg)
}

func stringID(c *call, _ []byte, _ string) {
	c.send(answer(quote(strings.Trim(string(c.ID), `"`)), textResult("answered with a string id", "")))
}

func nullID(c *call, _ []byte, _ string) {
	c.send(errorAnswer(json.RawMessage("null"), failure(-32603, "answered with id null")))
}

func noResult(c *call, _ []byte, _ string) {
	c.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, c.ID, grease))
}

func both(c *call, _ []byte, _ string) {
	c.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","result":%s,"error":{"code":-32042,"message":"both"},"id":%s}`, textResult("both", ""), c.ID))
}

func batch(c *call, msg []byte, _ string) {
	note := notification("notifications/message", `"level":"info","data":"in a batch"`)
	c.send(fmt.Appendf(nil, `[%s,%s]`, note, msg))
}

func lateProgress(c *call, msg []byte, _ string) {
	c.send(msg)
	c.progress(1, 1)
}

func flood(c *call, msg []byte, arg string) {
	note := notification("notifications/message", `"level":"debug","data":"flood"`)
	for range number(arg, 200_000) {
		c.peer.push(note)
	}
	c.send(msg)
}

func floodListChanged(c *call, msg []byte, arg string) {
	for range number(arg, 40_000) {
		c.peer.changed("tools")
	}
	c.send(msg)
}

// huge concatenates the answer once: quoting and formatting would copy it six times.
func huge(c *call, _ []byte, arg string) {
	before, after, _ := bytes.Cut(answer(c.ID, textResult("", "")), []byte(`""`))
	c.send(slices.Concat(before, []byte{'"'}, bytes.Repeat([]byte{'x'}, number(arg, 100<<20)), []byte{'"'}, after))
}

func deep(c *call, _ []byte, arg string) {
	n := number(arg, 1_000_000)
	nested := strings.Repeat("[", n) + strings.Repeat("]", n)
	c.send(answer(c.ID, textResult("deep", `,"deep":`+nested)))
}

func invalidUTF8(c *call, _ []byte, _ string) {
	c.send(answer(c.ID, json.RawMessage("{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\xc3(\"}]}")))
}

func garbageMid(c *call, msg []byte, _ string) {
	out := c.peer.fake.out
	out.raw([]byte("DEBUG about to answer\n{\"foo\":1}\n\n[1,2\n\"a string\"\n"))
	c.send(msg)
	out.raw([]byte("\x00\xff\xfe binary\nDEBUG answered }\n"))
}

func glued(c *call, msg []byte, _ string) {
	note := notification("notifications/message", `"level":"info","data":"glued"`)
	c.send(append(append(note, ' '), msg...))
}

func dribble(c *call, msg []byte, _ string) {
	out := c.peer.fake.out
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, b := range append(msg, '\n') {
		_, _ = out.file.Write([]byte{b})
	}
}

func closeStdout(c *call, _ []byte, _ string) { _ = c.peer.fake.out.file.Close() }
