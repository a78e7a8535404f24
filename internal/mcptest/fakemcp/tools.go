package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A tool is a built-in tool. args are the bytes of the arguments, nil without arguments.
type tool struct {
	name   string
	doc    string
	schema string // the properties, without braces
	run    func(c *call, args json.RawMessage) (json.RawMessage, error)
}

// builtins are always callable, and listed unless -bare.
var builtins = []tool{
	{"echo", "Return the arguments as text. Their bytes are kept.", `"nonce":{"type":"string"}`, runEcho},
	{"raw", "Answer exactly the value of result.", `"result":{}`, runRaw},
	{"fail", "Answer a JSON-RPC error.", `"code":{},"message":{"type":"string"},"data":{}`, runFail},
	{"tool_error", "Answer a result with isError.", `"text":{"type":"string"}`, runToolError},
	{"progress", "Send progress notifications, then the result.", `"steps":{"type":"integer"}`, runProgress},
	{"log", "Send log messages, then the result.", `"level":{"type":"string"},"logger":{"type":"string"},"data":{},"times":{"type":"integer"}`, runLog},
	{"sleep", "Wait this many milliseconds, or for ever with 0; a cancel ends it without an answer.", `"ms":{"type":"integer"}`, runSleep},
	{"ask", "Send a request to the client and return its answer verbatim.", `"method":{"type":"string"},"params":{}`, runAsk},
	{"received", "Return the last n messages received, verbatim.", `"n":{"type":"integer"}`, runReceived},
	{"notify", "Send a notification to the client.", `"method":{"type":"string"},"params":{},"times":{"type":"integer"}`, runNotify},
	{"add_tool", "Add a tool to the list.", `"name":{"type":"string"},"entry":{"type":"object"}`, adder("tools", "name", listedTool)},
	{"remove_tool", "Remove a tool from the list.", `"name":{"type":"string"}`, remover("tools")},
	{"add_resource", "Add a resource to the list.", `"name":{"type":"string"},"entry":{"type":"object"}`, adder("resources", "uri", resource)},
	{"remove_resource", "Remove a resource from the list.", `"name":{"type":"string"}`, remover("resources")},
	{"add_prompt", "Add a prompt to the list.", `"name":{"type":"string"},"entry":{"type":"object"}`, adder("prompts", "name", prompt)},
	{"remove_prompt", "Remove a prompt from the list.", `"name":{"type":"string"}`, remover("prompts")},
	{"touch", "Say that a resource changed, to a client that subscribed to it.", `"uri":{"type":"string"}`, runTouch},
	{"end_listen", "End every open subscriptions/listen with its result.", ``, runEndListen},
	{"big", "Return a text of this many bytes.", `"bytes":{"type":"integer"}`, runBig},
	{"env", "Return an environment variable.", `"name":{"type":"string"}`, runEnv},
	{"pid", "Return the process id.", ``, runPid},
	{"cwd", "Return the working directory.", ``, runCwd},
	{"args", "Return the command line.", ``, runArgs},
	{"headers", "Return the headers of the HTTP request that made this call.", ``, runHeaders},
	{"stderr", "Write a line to standard error.", `"text":{"type":"string"}`, runStderr},
	{"crash", "Exit with status 3 instead of answering.", ``, runCrash},
	{"spawn", "Start a child that does nothing.", `"mode":{"enum":["plain","ignore-term","fork"]},"setsid":{"type":"boolean"},"env":{"type":"string"}`, runSpawn},
	{"fault", "Answer this one call as a call fault would have it.", `"mode":{"type":"string"}`, runEcho},
}

// unlisted are the tools of a hostile server: callable, but never listed.
var unlisted = []tool{
	{"read_file", "Return what is in a file.", `"name":{"type":"string"}`, runReadFile},
	{"write_file", "Make a file.", `"name":{"type":"string"}`, runWriteFile},
	{"get", "Return what is at an address, by the proxy of the environment.", `"name":{"type":"string"}`, runGet},
}

func (t tool) entry() entry {
	return entry{t.name, fmt.Appendf(nil,
		`{%s,"inputSchema":{"properties":{%s},"type":"object","x-schema":1.0},"name":%s,"annotations":{"openWorldHint":false,"x-hint":1e2},"description":%s,"_meta":{"example.org/rank":1.0}}`,
		grease, t.schema, quote(t.name), quote(t.doc))}
}

// listedTool returns a tool that is added at run time. It echoes.
func listedTool(name string) entry { return tool{name: name, doc: "Added later. It echoes."}.entry() }

// callTool runs a built-in tool. Any other name echoes if it is listed.
func (c *call) callTool() (json.RawMessage, error) {
	if c.paramsErr != nil {
		return nil, c.paramsErr
	}
	name, arguments := c.params.Name, c.params.Arguments
	for _, t := range slices.Concat(builtins, unlisted) {
		if t.name == name {
			return t.run(c, arguments)
		}
	}
	if c.peer.fake.cfg.tasks {
		if result, ok, err := c.callTaskTool(name, arguments); ok {
			return result, err
		}
	}
	if c.peer.fake.offer.has("tools", name) {
		return runEcho(c, arguments)
	}
	return nil, failure(-32602, "Unknown tool: %s", name)
}

func runEcho(_ *call, args json.RawMessage) (json.RawMessage, error) {
	structured := ""
	if len(args) > 0 && args[0] == '{' {
		structured = `,"structuredContent":` + string(args)
	}
	return textResult(orAbsent(args), structured), nil
}

func runRaw(_ *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ Result json.RawMessage }
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if a.Result == nil {
		return nil, failure(-32602, "raw needs a result")
	}
	return a.Result, nil
}

func runFail(_ *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}{
		Code:    json.RawMessage("-32042"),
		Message: "failed as asked",
		Data:    json.RawMessage(`{` + grease + `}`),
	}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	return nil, &rpcError{a.Code, a.Message, a.Data}
}

func runToolError(_ *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct{ Text string }{"the tool failed"}
	err := decode(args, &a)
	return textResult(a.Text, `,"isError":true`), err
}

func runReceived(c *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct{ N int }{10}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	c.peer.mu.Lock()
	last := c.peer.received
	last = last[max(0, len(last)-a.N):]
	c.peer.mu.Unlock()
	text := "["
	for i, raw := range last {
		if i > 0 {
			text += ","
		}
		text += string(quote(string(raw)))
	}
	return textResult(text+"]", ""), nil
}
