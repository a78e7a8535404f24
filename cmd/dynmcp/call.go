package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// callFlags say where arguments come from and how a result is printed.
type callFlags struct {
	json          string
	raw, indented bool
}

func callCommand() *cobra.Command {
	var on target
	var flags callFlags
	var cmd *cobra.Command
	cmd = on.command(&cobra.Command{
		Use:   "call [flags] SERVER/TOOL [key=value… | -] [-- command args…]",
		Short: "Call a tool and print its result",
		Long: `Call a tool as a host would and print its result. Only the tool's own server is
started, and it is stopped again afterwards.

Arguments are written key=value. If the tool's schema wants something other than
a string and the value is JSON of that type, it is sent as that; otherwise it is
sent as a string. key:=json is always JSON. Instead, --json '{…}' takes all
arguments as one object, and - reads that object from stdin.

Text is printed as it is; images and other data are only described. The exit
status is 1 if the tool reports an error or cannot be called.`,
		Example: `  dynmcp call files/read_file path=README.md
  dynmcp call git/log max_count=3 'paths:=["cmd","docs"]'
  echo '{"path": "README.md"}' | dynmcp call files/read_file -
  dynmcp call echo message=hi \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeTools(&on),
	}, func(ctx context.Context, args []string) error { return on.call(ctx, cmd, args, flags) })
	cmd.Flags().StringVar(&flags.json, "json", "", "the arguments as a JSON `object`; - reads it from stdin")
	cmd.Flags().BoolVar(&flags.raw, "raw", false, "print the result as the server sent it, in one line of JSON")
	cmd.Flags().BoolVar(&flags.indented, "json-output", false, "print the result as JSON over several lines")
	return cmd
}

// call calls the tool that the first of args names.
func (t *target) call(ctx context.Context, cmd *cobra.Command, args []string, flags callFlags) error {
	if len(args) == 0 {
		return hinted(errors.New("no tool given"), "dynmcp call <server/tool> [key=value…]; dynmcp find WORDS finds tools")
	}
	if flags.raw && flags.indented {
		return hinted(errors.New("--raw and --json-output exclude each other"), "leave out one of them")
	}
	// What is wrong with the arguments is said before anything is started.
	name, words := args[0], args[1:]
	input, err := flags.readObject(cmd.Flags().Changed("json"), cmd.InOrStdin(), words)
	if err != nil {
		return err
	}
	h, tool, err := t.startTool(ctx, name)
	if err != nil {
		return err
	}
	defer h.close()
	if input == nil {
		input = argumentObject(words, tool.InputSchema)
	}
	result, err := callTool(ctx, h.conn, t.errOut, tool.Name, input)
	if err != nil {
		return toolError(tool.Name, err)
	}
	return flags.print(t.out, tool, result)
}

// callTool calls a tool. On a terminal it asks for progress and shows it. When
// ctx ends first, the call is cancelled.
func callTool(ctx context.Context, conn *upstream.Conn, errOut *terminal.Writer, name string, input json.RawMessage) (result json.RawMessage, err error) {
	waiting := terminal.ShowProgress(errOut, "calling "+name)
	defer waiting.End()
	done := make(chan struct{})
	call := &upstream.Call{Method: "tools/call", Done: func(r json.RawMessage, e error) {
		result, err = bytes.Clone(r), e
		close(done)
	}}
	meta := ""
	if errOut.Interactive {
		meta = `,"_meta":{"progressToken":1}`
		call.Peer = notifyFunc(func(_ string, params json.RawMessage) {
			var p struct {
				Progress, Total float64
				Message         string
			}
			if json.Unmarshal(params, &p) == nil {
				waiting.Say(strings.TrimSuffix(fmt.Sprintf("calling %s: %s %s", name, fraction(p.Progress, p.Total), p.Message), " "))
			}
		})
	}
	call.Params = fmt.Appendf(nil, `{"name":"use_tool","arguments":{"tool_name":%s,"tool_input":%s}%s}`, wire.Quote(name), wire.JoinLines(bytes.Clone(input)), meta)
	conn.Start(call)
	select {
	case <-done:
	case <-ctx.Done():
		if conn.Cancel(call, nil) {
			// The end of dynmcp must not overtake this on its way to the server: it
			// has been passed on when what follows it is answered.
			fence, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer stop()
			_, _ = conn.Call(fence, "ping", nil)
			return nil, errInterrupted
		}
		<-done // it was answered meanwhile
	}
	return result, err
}

// fraction says how far a call has come, of a total that may be unknown.
func fraction(progress, total float64) string {
	if total > 0 {
		return fmt.Sprintf("%.0f%%", 100*progress/total)
	}
	return fmt.Sprintf("%g", progress)
}

// readObject returns arguments that are given as one object, nil if they are given
// as words.
func (f *callFlags) readObject(given bool, stdin io.Reader, words []string) (json.RawMessage, error) {
	text, from := f.json, "--json"
	switch {
	case given && len(words) > 0:
		return nil, hinted(fmt.Errorf("--json and %q: the arguments are given twice", words[0]), "use --json or key=value")
	case given:
	case len(words) == 1 && words[0] == "-":
		text = "-"
	default:
		return nil, checkWords(words)
	}
	if text == "-" {
		all, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
		text, from = string(all), "stdin"
	}
	const example = `for example {"path": "README.md"}; mind the shell's quoting`
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, hinted(fmt.Errorf("%s: the arguments are not JSON: %v", from, err), example)
	}
	if !bytes.HasPrefix(value, []byte("{")) {
		return nil, hinted(fmt.Errorf("%s: the arguments must be a JSON object", from), example)
	}
	return value, nil
}

// serverOfTool returns the server that the name of a tool begins with. With a
// single server, names of tools have no server in front.
func serverOfTool(cfg *schema.Config, name string) (string, error) {
	if cfg.SingleWrap {
		return cfg.Servers[0].Name, nil
	}
	server, _, ok := strings.Cut(name, "/")
	s, err := serverNamed(cfg, server)
	switch {
	case !ok && err == nil:
		return "", hinted(fmt.Errorf("%q is a server, not a tool", name), "write %s/tool; dynmcp test %s lists its tools", name, name)
	case !ok:
		return "", hinted(fmt.Errorf("%q is not the name of a tool", name), "write server/tool; dynmcp find %s searches for it", name)
	case err == nil && s.Off != nil:
		return "", offError(s)
	case err == nil && s.Disabled:
		return "", hinted(fmt.Errorf("%s is disabled", server), `remove "disabled" from its entry in %s`, cfg.Path)
	}
	return server, err
}

func unknownTool(view *catalog.View, name string) error {
	err := fmt.Errorf("unknown tool %q", name)
	if near := view.Nearest(name, 3); len(near) > 0 {
		return hinted(err, "did you mean %s?", toolNames(near))
	}
	if all := view.Tools(); len(all) > 0 && len(all) <= 10 {
		return hinted(err, "its tools are: %s", toolNames(all))
	}
	return hinted(err, "the server has %d tools; dynmcp test lists them", len(view.Tools()))
}

func toolNames(tools []*catalog.Tool) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// toolError puts the tool in front of an error. Of a JSON-RPC error, code and data
// are shown as well.
func toolError(tool string, err error) error {
	var rpc *wire.Error
	if !errors.As(err, &rpc) {
		return fmt.Errorf("%s: %w", tool, err)
	}
	data := ""
	if len(rpc.Data) > 0 {
		data = "\ndata: " + string(rpc.Data)
	}
	return fmt.Errorf("%s: %w (code %d)%s", tool, err, rpc.Code, data)
}

// A content is one part of a tool's result.
type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"`
	MIMEType string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Resource *resource `json:"resource"`
}

// A resource is what was read of one.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

func (f *callFlags) print(out *terminal.Writer, tool *catalog.Tool, result json.RawMessage) error {
	var r struct {
		Content    []content       `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	err := json.Unmarshal(result, &r)
	switch {
	case f.raw || err != nil:
		out.Printf("%s\n", result)
	case f.indented:
		out.Printf("%s\n", indentedJSON(result))
	case len(r.Content) == 0 && r.Structured != nil:
		out.Printf("%s\n", indentedJSON(r.Structured))
	default:
		for _, c := range r.Content {
			out.Printf("%s\n", trimEnd(c.describe("--raw")))
		}
	}
	if out.Err == nil && r.IsError {
		return hinted(fmt.Errorf("%s reports an error", tool.Name), "dynmcp describe %s shows what it takes", tool.Name)
	}
	return out.Err
}

// describe returns the text of a part, or a description of what is not text and of
// the flag that prints it.
func (c content) describe(flag string) string {
	switch {
	case c.Type == "text":
		return c.Text
	case c.Type == "resource_link":
		return fmt.Sprintf("[link to %s]", c.URI)
	case c.Type == "resource" && c.Resource != nil:
		return c.Resource.describe(flag)
	}
	return describeData(c.Type, c.MIMEType, c.Data, flag)
}

// describe is describe of a content.
func (r *resource) describe(flag string) string {
	if r.Text != nil {
		return *r.Text
	}
	return describeData(r.URI, r.MIMEType, r.Blob, flag)
}

// describeData says what is not printed, and which flag prints it. mimeType and
// encoded, in base64, may be empty.
func describeData(name, mimeType, encoded, flag string) string {
	var about []string
	if mimeType != "" {
		about = append(about, mimeType)
	}
	if n := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "="))); n > 0 {
		about = append(about, fmt.Sprintf("%d bytes", n))
	}
	if len(about) > 0 {
		name += ": " + strings.Join(about, ", ")
	}
	return "[" + name + "; " + flag + " prints it]"
}

// trimEnd takes a line break off the end of a text.
func trimEnd(text string) string { return strings.TrimSuffix(text, "\n") }

// indentedJSON spreads JSON over lines; its values stay the same bytes.
func indentedJSON(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}
