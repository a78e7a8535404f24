package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// requestFaults apply to the handshake, the lists and ping. Those whose doc says KIND apply to one
// kind of list, their ARG, or to every list without it.
var requestFaults = []fault{
	{name: "exit-on-init", doc: "exit with status 4 instead of answering initialize", on: "initialize", request: exitOn},
	{name: "hang-init", doc: "never answer initialize", on: "initialize", request: hangOn},
	{name: "fail-init", doc: "answer initialize with an error", on: "initialize", request: failOn},
	{name: "slow-init", doc: "answer initialize after ARG (200) milliseconds", on: "initialize", request: slowOn},
	{name: "gate-init", doc: "answer initialize when the file ARG exists", on: "initialize", request: gateOn},
	{name: "exit-on-discover", doc: "exit with status 4 when asked for server/discover", on: "server/discover", request: exitOn},
	{name: "unsupported", doc: "refuse the protocol version, naming ARG (2026-07-28) as supported", on: "server/discover", request: refuseVersion},
	{name: "hang-discover", doc: "never answer server/discover", on: "server/discover", request: hangOn},
	{name: "stderr-on-discover", doc: "write 6 KB on stderr, then refuse server/discover", on: "server/discover", request: noisyDiscover},
	{name: "exit-on-list", doc: "exit with status 4 when a list is asked for (KIND)", on: "/list", request: exitOn},
	{name: "hang-list", doc: "never answer a list (KIND)", on: "/list", request: hangOn},
	{name: "fail-list", doc: "answer a list with an error (KIND)", on: "/list", request: failOn},
	{name: "slow-list", doc: "answer every list after ARG (200) milliseconds", on: "/list", request: slowOn},
	{name: "gate-list", doc: "answer every list when the file ARG exists", on: "/list", request: gateOn},
	{name: "cursor-loop", doc: "every page of a list names itself as the next", on: "/list", request: cursorLoop},
	{name: "cursor-endless", doc: "every page of a list names a new next one", on: "/list", request: cursorEndless},
	{name: "cursor-empty", doc: "the page of a list has the next cursor \"\"", on: "/list", request: cursorEmpty},
	{name: "list-null", doc: "a list's member is null (KIND)", on: "/list", request: listNull},
	{name: "hang-ping", doc: "never answer ping", on: "ping", request: hangOn},
	{name: "gate-call", doc: "answer tools/call when the file ARG exists", on: "tools/call", request: gateOn},
}

// otherList reports whether the fault is for another kind of list.
func (c *call) otherList(kind string) bool {
	return kind != "" && strings.HasSuffix(c.Method, "/list") && c.Method != kind+"/list"
}

func exitOn(c *call, kind string) bool {
	if c.otherList(kind) {
		return false
	}
	fmt.Fprintln(os.Stderr, "fakemcp: fatal:", c.Method)
	c.peer.fake.exit(4, c.Method)
	return true
}

func hangOn(c *call, kind string) bool {
	if c.otherList(kind) {
		return false
	}
	<-c.ctx.Done()
	return true
}

func failOn(c *call, kind string) bool {
	if c.otherList(kind) {
		return false
	}
	c.send(errorAnswer(c.ID, &rpcError{
		Code: json.RawMessage("-32603"), Message: "refused as asked", Data: json.RawMessage(`{` + grease + `}`),
	}))
	return true
}

func refuseVersion(c *call, version string) bool {
	c.send(errorAnswer(c.ID, unsupported(c.about.Version, []string{cmp.Or(version, newVersion)})))
	return true
}

func slowOn(c *call, ms string) bool {
	select {
	case <-c.ctx.Done():
		return true
	case <-time.After(time.Duration(number(ms, 200)) * time.Millisecond):
		return false
	}
}

// gateOn delays the answer until the test creates the file.
func gateOn(c *call, file string) bool { return !c.waitForFile(file) }

// waitForFile returns true when the file exists, false if the call was cancelled before. A file is a
// signal that reaches a process through any number of parents.
func (c *call) waitForFile(file string) bool {
	for {
		if _, err := os.Stat(file); err == nil {
			return true
		}
		select {
		case <-c.ctx.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func noisyDiscover(c *call, _ string) bool {
	_, _ = os.Stderr.WriteString(strings.Repeat("unknown method server/discover\n", 200))
	c.send(errorAnswer(c.ID, noSuchMethod(c.Method)))
	return true
}

// listMember returns the member of the result that has the list.
func (c *call) listMember() string {
	kind := strings.TrimSuffix(c.Method, "/list")
	if kind == "resources/templates" {
		return "resourceTemplates"
	}
	return kind
}

func (c *call) sendPage(next string) bool {
	kind := c.listMember()
	page, _, err := c.peer.fake.offer.slice(kind, "")
	if err != nil {
		return false
	}
	c.send(answer(c.ID, listResult(kind, page, next)))
	return true
}

func cursorLoop(c *call, _ string) bool { return c.sendPage("again") }

func cursorEndless(c *call, _ string) bool { return c.sendPage("after request " + string(c.ID)) }

func cursorEmpty(c *call, _ string) bool {
	page, _, _ := c.peer.fake.offer.slice(c.listMember(), "")
	result := listResult(c.listMember(), page, "again")
	c.send(answer(c.ID, json.RawMessage(strings.Replace(string(result), `"nextCursor":"again"`, `"nextCursor":""`, 1))))
	return true
}

func listNull(c *call, kind string) bool {
	if c.otherList(kind) {
		return false
	}
	c.send(answer(c.ID, fmt.Appendf(nil, `{%s,%q:null}`, grease, c.listMember())))
	return true
}
