package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A fault is one way to misbehave. It has one of the four functions:
//
//	start    runs once, before the first message is read
//	request  runs for each request whose method on matches; true means it was handled
//	answer   receives the correct answer, and sends messages in its place
//	http     runs for each HTTP request; true means it was handled
//
// arg is the part after the colon in MODE:ARG.
type fault struct {
	name    string
	doc     string
	start   func(f *fake, arg string)
	on      string // the method of request and http, or its end
	request func(c *call, arg string) bool
	answer  func(c *call, msg []byte, arg string)
	http    func(x *exchange, arg string) bool
	once    bool // strikes once, in all processes that share the ledger
}

// armed is a fault of the command line.
type armed struct {
	fault
	arg   string
	tool  string
	times int // 0: every time

	mu     sync.Mutex
	struck int // strikes in this process
}

// allFaults is set by init, because the functions of faults refer to it.
var allFaults []fault

func init() {
	for _, group := range [][]fault{startFaults, requestFaults, answerFaults, httpFaults, noiseFaults} {
		allFaults = append(allFaults, group...)
	}
}

func printFaults(w io.Writer) {
	for _, f := range allFaults {
		fmt.Fprintf(w, "%-22s %s\n", f.name, f.doc)
	}
}

func findFault(mode string) (fault, string, error) {
	name, arg, _ := strings.Cut(mode, ":")
	for _, f := range allFaults {
		if f.name == name {
			return f, arg, nil
		}
	}
	return fault{}, "", fmt.Errorf("no fault %q, see -faults", name)
}

// arm returns the faults of -fault, with the flags that restrict them.
func arm(cfg config) ([]*armed, error) {
	var all []*armed
	for mode := range strings.SplitSeq(cfg.faults, ",") {
		if mode == "" {
			continue
		}
		f, arg, err := findFault(mode)
		if err != nil {
			return nil, err
		}
		a := &armed{fault: f, arg: arg, tool: cfg.faultTool, times: cfg.faultTimes}
		if f.once {
			a.times = 1
		}
		a.on = cmp.Or(cfg.faultOn, f.on)
		all = append(all, a)
	}
	return all, nil
}

// start runs the faults that need no message.
func (f *fake) start() {
	for _, a := range f.faults {
		if a.start != nil {
			a.start(f, a.arg)
		}
	}
}

// strikeRequest reports whether a fault has handled the request.
func (c *call) strikeRequest() bool {
	for _, a := range c.peer.fake.faults {
		if a.request != nil && strings.HasSuffix(c.Method, a.on) && a.due(c.peer.fake.ledger) && a.request(c, a.arg) {
			return true
		}
	}
	return false
}

// strikeAnswer reports whether a fault has replaced the answer: one of the command line, or the one
// that a call of the tool fault names.
func (c *call) strikeAnswer(msg []byte) bool {
	if mode := c.faultWanted(); mode != "" {
		f, arg, err := findFault(mode)
		if err != nil || f.answer == nil {
			c.send(errorAnswer(c.ID, failure(-32602, "no call fault %q", mode)))
			return true
		}
		f.answer(c, msg, arg)
		return true
	}
	for _, a := range c.peer.fake.faults {
		if a.answer != nil && a.aims(c) && a.due(c.peer.fake.ledger) {
			a.answer(c, msg, a.arg)
			return true
		}
	}
	return false
}

func (c *call) faultWanted() string {
	var arguments struct{ Mode string }
	if c.toolName() != "fault" || json.Unmarshal(c.params.Arguments, &arguments) != nil {
		return ""
	}
	return arguments.Mode
}

// aims reports whether an answer fault applies to this call.
func (a *armed) aims(c *call) bool {
	on := cmp.Or(a.on, "tools/call")
	return (on == "*" || on == c.Method) && (a.tool == "" || a.tool == c.toolName())
}

// toolName returns the name of the called tool, "" for other methods.
func (c *call) toolName() string {
	if c.Method != "tools/call" {
		return ""
	}
	return c.params.Name
}

// due reports whether the fault has strikes left, and counts one. Strikes are counted in the ledger,
// so that "once" means once in all processes.
func (a *armed) due(l *ledger) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	event := "fault " + a.name
	done := a.struck
	if a.times > 0 && l != nil {
		done = l.count(event)
	}
	if a.times > 0 && done >= a.times {
		return false
	}
	a.struck++
	l.add("%s", event)
	return true
}

// number returns a fault's argument, or the default without one.
func number(arg string, otherwise int) int {
	if n, err := strconv.Atoi(arg); err == nil {
		return n
	}
	return otherwise
}
