package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// config is the command line.
type config struct {
	name         string
	instructions string
	protocol     string
	era          string
	ledger       string
	http         string
	sse          bool
	json         bool
	bearer       string
	tasks        bool
	askRoots     bool
	regard       string

	tools      int
	bare       bool
	page       int
	uriPrefix  string
	no         set
	refuse     set
	toolDefs   list
	resources  list
	prompts    list
	listFaults bool
	faults     string
	faultOn    string
	faultTool  string
	faultTimes int
	maxLife    time.Duration
	leaveAfter time.Duration
	idle       string
}

func parseFlags(args []string, out io.Writer) (config, error) {
	c := config{no: set{}, refuse: set{}}
	fs := flag.NewFlagSet("fakemcp", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&c.name, "name", "fakemcp", "serverInfo.name")
	fs.StringVar(&c.instructions, "instructions", "", "instructions in the answer to initialize")
	fs.StringVar(&c.protocol, "protocol", "", "the only protocol version to answer (default: the one asked for, if known)")
	fs.StringVar(&c.era, "era", "old", "old: initialize; new: 2026-07-28, stateless; both")
	fs.StringVar(&c.ledger, "ledger", "", "append one line per event to this file")
	fs.StringVar(&c.http, "http", "", "serve HTTP on this address instead of stdio; the URL is the first line on stderr")
	fs.BoolVar(&c.sse, "sse", false, "with -http: the HTTP+SSE transport of 2024-11-05")
	fs.BoolVar(&c.json, "json", false, "with -http: answer application/json where nothing precedes the answer")
	fs.StringVar(&c.bearer, "bearer", "", "with -http: refuse requests without this bearer token")
	fs.BoolVar(&c.askRoots, "ask-roots", false, "ask for the roots as soon as the client says that it is initialized, on no request's stream")
	fs.StringVar(&c.regard, "regard", "", "list entries whose names end in needs_roots, needs_sampling, needs_elicitation, needs_url or needs_ui to clients that declare it: at once, or late, with list_changed")
	fs.BoolVar(&c.tasks, "tasks", false, "with -era new: offer tools that become tasks (extension io.modelcontextprotocol/tasks)")

	fs.IntVar(&c.tools, "tools", 0, "offer this many generated tools, tool_001 and so on, which echo")
	fs.BoolVar(&c.bare, "bare", false, "leave the built-in tools out of tools/list (they can still be called)")
	fs.IntVar(&c.page, "page", 0, "entries per page of every list (0: one page)")
	fs.StringVar(&c.uriPrefix, "uri-prefix", "", "prefix of the built-in resources (default fake://NAME/)")
	fs.Var(c.no, "no", "capabilities not to offer: tools,resources,prompts,logging,completions")
	fs.Var(c.refuse, "advertise-but-32601", "capabilities to advertise and then refuse with -32601")
	fs.Var(&c.toolDefs, "tool", "a tool's definition as JSON, listed byte for byte; it echoes (repeatable)")
	fs.Var(&c.resources, "resource", "a resource's URI, or its entry as JSON (repeatable; replaces the built-in ones)")
	fs.Var(&c.prompts, "prompt", "a prompt's name, or its entry as JSON (repeatable; replaces the built-in one)")

	fs.BoolVar(&c.listFaults, "faults", false, "print the fault modes and exit")
	fs.StringVar(&c.faults, "fault", "", "fault modes, MODE or MODE:ARG, comma separated")
	fs.StringVar(&c.faultOn, "fault-on", "", "the method that request, call and HTTP faults strike (default: see -faults; * for every one)")
	fs.StringVar(&c.faultTool, "fault-tool", "", "the only tool whose calls a call fault strikes (default: every tool)")
	fs.IntVar(&c.faultTimes, "fault-times", 0, "strike only so many times, over all processes that share the ledger (0: always)")
	fs.DurationVar(&c.maxLife, "max-life", 10*time.Minute, "exit after this long, whatever happens")
	fs.DurationVar(&c.leaveAfter, "leave-after", 15*time.Second, "when stdin has ended, wait so long for calls that do not end; an answer may take long to be read")
	fs.StringVar(&c.idle, "idle", "", "be a child that does nothing: plain, ignore-term or fork (internal)")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if c.uriPrefix == "" {
		c.uriPrefix = "fake://" + c.name + "/"
	}
	return c, nil
}

// list is a repeatable flag.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// set is a comma-separated flag.
type set map[string]bool

func (s set) String() string { return "" }

func (s set) Set(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		switch name {
		case "tools", "resources", "prompts", "logging", "completions":
			s[name] = true
		default:
			return fmt.Errorf("no capability %q", name)
		}
	}
	return nil
}
