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

	"github.com/spf13/cobra"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports/upstream"
)

func callCommand() *cobra.Command {
	var on target
	var how callFlags
	var cmd *cobra.Command
	cmd = on.command(&cobra.Command{
		Use:   "call [flags] <server/tool> [key=value… | -] [-- command args…]",
		Short: "Call a tool and print its result",
		Long: `Call a tool as a host would and print its result. Of the servers, only the
tool's own is started, and stopped again afterwards.

Arguments are written key=value. A value is JSON where the tool's schema asks
for something else than text and the value is that, and text otherwise;
key:=json is JSON always. In place of them, --json '{…}' takes all arguments
as one object, and - reads that object from stdin.

Text is printed as it is; of images and other data it is told what they are.
The exit status is 1 if the tool reports an error or cannot be called.`,
		Example: `  dynmcp call files/read_file path=README.md
  dynmcp call git/log max_count=3 'paths:=["cmd","docs"]'
  echo '{"path": "README.md"}' | dynmcp call files/read_file -
  dynmcp call echo message=hi -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeServers(&on.configFlags, "/"),
	}, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return hinted(errors.New("which tool? none was named"), "dynmcp call <server/tool> [key=value…]; dynmcp find WORDS finds tools")
		}
		if how.raw && how.indent {
			return hinted(errors.New("--raw and --json-output exclude each other"), "leave out one of them")
		}
		how.given = cmd.Flags().Changed("json")
		return how.run(ctx, &on, cmd.InOrStdin(), args[0], args[1:])
	})
	cmd.Flags().StringVar(&how.arguments, "json", "", "the arguments as a JSON `object`; - reads it from stdin")
	cmd.Flags().BoolVar(&how.raw, "raw", false, "print the result as the server sent it, in one line of JSON")
	cmd.Flags().BoolVar(&how.indent, "json-output", false, "print the result as JSON over several lines")
	return cmd
}

// callFlags say where arguments come from and how a result is printed.
type callFlags struct {
	arguments   string
	given       bool // --json was
	raw, indent bool
}

func (f *callFlags) run(ctx context.Context, on *target, stdin io.Reader, name string, words []string) error {
	given, err := f.read(stdin, words)
	if err != nil {
		return err
	}
	h, tool, err := on.startTool(ctx, name)
	if err != nil {
		return err
	}
	defer h.close()
	if given == nil {
		if given, err = arguments(words, tool.InputSchema); err != nil {
			return err
		}
	}
	result, err := callTool(ctx, h.conn, on.errOut, tool.Name, given)
	if err != nil {
		return refused(tool.Name, err)
	}
	return f.print(on.out, tool, result)
}

// callTool calls a tool. On a terminal it asks for progress and shows it. When
// ctx ends first, the call is cancelled.
func callTool(ctx context.Context, conn *upstream.Conn, s *screen, name string, given json.RawMessage) (result json.RawMessage, err error) {
	waiting := showProgress(s, "calling "+name)
	defer waiting.end()
	done := make(chan struct{})
	call := &upstream.Call{Method: "tools/call", Done: func(r json.RawMessage, e error) {
		result, err = r, e
		close(done)
	}}
	meta := ""
	if s.terminal {
		meta = `,"_meta":{"progressToken":1}`
		call.Peer = notifyFunc(func(_ string, params json.RawMessage) {
			var p struct{ Message string }
			if json.Unmarshal(params, &p) == nil && p.Message != "" {
				waiting.say("calling " + name + ": " + p.Message)
			}
		})
	}
	call.Params = fmt.Appendf(nil, `{"name":"use_tool","arguments":{"tool_name":%s,"tool_input":%s}%s}`, jsonText(name), given, meta)
	conn.Start(call)
	select {
	case <-done:
	case <-ctx.Done():
		if conn.Cancel(call, nil) {
			return nil, errInterrupted
		}
		<-done // it was answered meanwhile
	}
	return result, err
}

// read returns arguments that come as one object, nil where they do not. It
// is done before anything is started.
func (f *callFlags) read(stdin io.Reader, words []string) (json.RawMessage, error) {
	text := f.arguments
	switch {
	case f.given && len(words) > 0:
		return nil, hinted(fmt.Errorf("--json and %q: the arguments are given twice", words[0]), "use --json or key=value")
	case f.given:
	case len(words) == 1 && words[0] == "-":
		text = "-"
	default:
		return nil, checkWords(words)
	}
	from := "--json"
	if text == "-" {
		all, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
		text, from = string(all), "stdin"
	}
	return object(text, from)
}

func object(text, from string) (json.RawMessage, error) {
	raw := bytes.TrimSpace([]byte(text))
	if len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return raw, nil
	}
	const example = `like {"path": "README.md"}; mind the quotes of the shell`
	var anything json.RawMessage
	if err := json.Unmarshal(raw, &anything); err != nil {
		return nil, hinted(fmt.Errorf("%s: the arguments are not JSON: %v", from, err), example)
	}
	return nil, hinted(fmt.Errorf("%s: the arguments must be a JSON object", from), example)
}

// serverOfTool returns the server that the name of a tool begins with; where
// there is but one server, names have none.
func serverOfTool(cfg *schema.Config, name string) (string, error) {
	if cfg.SingleWrap {
		return cfg.Servers[0].Name, nil
	}
	server, _, ok := strings.Cut(name, "/")
	if !ok {
		return "", notATool(cfg, name)
	}
	s, err := serverOf(cfg, server)
	if err == nil && s.Disabled {
		err = hinted(fmt.Errorf("%s is disabled", server), `take "disabled" out of its entry in %s`, cfg.Path)
	}
	return server, err
}

// notATool is about a name without a server in front of it.
func notATool(cfg *schema.Config, name string) error {
	if _, err := serverOf(cfg, name); err == nil {
		return hinted(fmt.Errorf("%q is a server, not a tool", name), "write %s/tool; dynmcp test %s lists its tools", name, name)
	}
	return hinted(fmt.Errorf("%q is not the name of a tool", name), "write server/tool; dynmcp find %s searches for it", name)
}

func unknownTool(view *catalog.View, name string) error {
	err := fmt.Errorf("unknown tool %q", name)
	if near := view.Nearest(name, 3); len(near) > 0 {
		return hinted(err, "did you mean %s?", toolNames(near))
	}
	if all := view.Tools(); len(all) > 0 && len(all) <= 10 {
		return hinted(err, "there are: %s", toolNames(all))
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

// refused puts the tool in front of a JSON-RPC error, and what came with it
// behind.
func refused(tool string, err error) error {
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
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

func (f *callFlags) print(s *screen, tool *catalog.Tool, result json.RawMessage) error {
	var r struct {
		Content    []content       `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	err := json.Unmarshal(result, &r)
	switch {
	case f.raw || err != nil:
		s.printf("%s\n", result)
	case f.indent:
		s.printf("%s\n", indentedJSON(result))
	case len(r.Content) == 0 && r.Structured != nil:
		s.printf("%s\n", indentedJSON(r.Structured))
	default:
		for _, c := range r.Content {
			s.printf("%s\n", strings.TrimSuffix(c.String(), "\n"))
		}
	}
	if s.err == nil && r.IsError {
		return hinted(fmt.Errorf("%s reports an error", tool.Name), "dynmcp describe %s shows what it takes", tool.Name)
	}
	return s.err
}

// String is the text of a part, or what there is instead of text.
func (c content) String() string {
	switch {
	case c.Type == "text":
		return c.Text
	case c.Type == "resource_link":
		return fmt.Sprintf("[link to %s]", c.URI)
	case c.Type == "resource" && c.Resource != nil && c.Resource.Text != nil:
		return *c.Resource.Text
	case c.Type == "resource" && c.Resource != nil:
		return fmt.Sprintf("[%s: %s]", c.Resource.URI, data(c.Resource.MIMEType, c.Resource.Blob))
	}
	return fmt.Sprintf("[%s: %s]", c.Type, data(c.MIMEType, c.Data))
}

// data says what is not printed.
func data(kind, encoded string) string {
	if kind == "" {
		kind = "no text"
	}
	if n := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "="))); n > 0 {
		kind += fmt.Sprintf(", %d bytes", n)
	}
	return kind + "; --raw prints it"
}

// indentedJSON spreads JSON over lines; its values stay the same bytes.
func indentedJSON(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

func jsonText(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // not reached: every string can be encoded
	}
	return raw
}
