// Package call has the verbs that send requests to servers as a host would: call, find, describe,
// read, prompt.
package call

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// callFlags select the format of a result.
type callFlags struct{ raw, indented bool }

// Call calls a tool.
var Call = cli.Verb{
	Use:   "call [flags] SERVER/TOOL [key=value… | -] [-- command args…]",
	Group: cli.Look,
	Short: "Call a tool and print its result",
	Long: `Call a tool as a host would and print its result. Only the tool's own server is
started, and it is stopped again afterwards.

Arguments are written key=value. If the tool's schema wants something other than
a string and the value is JSON of that type, it is sent as that; otherwise it is
sent as a string. key:=json is always JSON. Instead, '{…}' or --arguments '{…}'
takes all arguments as one object, and - reads that object from stdin.

Text is printed as it is; images and other data are only described. The exit
status is 1 if the tool reports an error or cannot be called.`,
	Example: `  dynmcp call files/read_file path=README.md
  dynmcp call git/log max_count=3 'paths:=["cmd","docs"]'
  echo '{"path": "README.md"}' | dynmcp call files/read_file -
  dynmcp call echo message=hi \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args: cobra.ArbitraryArgs,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{About: selfhost.OfTools}
		var flags callFlags
		cmd.Flags().String("arguments", "", "the arguments as a JSON `object`; - reads it from stdin")
		cmd.Flags().BoolVar(&flags.raw, "raw", false, "print the result as the server sent it, in one line of JSON")
		cmd.Flags().BoolVar(&flags.indented, "json", false, "print the result as JSON over several lines")
		cli.AddOld(cmd, "json", "json-output")
		cmd.ValidArgsFunction = selfhost.CompleteCall(&on)
		return on.Run(cmd, func(ctx context.Context, args []string) error { return runCall(ctx, &on, cmd, args, flags) })
	},
}

func runCall(ctx context.Context, t *selfhost.Target, cmd *cobra.Command, args []string, flags callFlags) error {
	if len(args) == 0 {
		return hint.With(errors.New("no tool given"), "dynmcp call <server/tool> [key=value…]; dynmcp find WORDS finds tools")
	}
	if flags.raw && flags.indented {
		return hint.With(errors.New("--raw and --json exclude each other"), "leave out one of them")
	}
	// Errors in the arguments are reported before anything is started.
	name, words := args[0], args[1:]
	input, err := ReadObject(cmd, "arguments", words)
	if err != nil {
		return err
	}
	h, tool, err := t.StartTool(ctx, name)
	if err != nil {
		return err
	}
	defer h.Close()
	if input == nil {
		input = ArgumentObject(words, tool.InputSchema)
	}
	result, err := callTool(ctx, h.Conn, t.ErrOut, tool.Name, input)
	if err != nil {
		rpc, ok := errors.AsType[*wire.Error](err)
		shown := ok && strings.Contains(rpc.Message, schemaForModels)
		if ok {
			rpc.Message = strings.Replace(rpc.Message, schemaForModels, schemaForPeople, 1)
		}
		if err = toolError(tool.Name, err); ok && rpc.Code == wire.CodeInvalidParams && !shown {
			return hint.With(err, describeHint, tool.Name)
		}
		return err
	}
	result = bytes.Replace(result, []byte(schemaForModels), []byte(schemaForPeople), 1)
	return flags.print(t.Out, tool, result, h.Answered())
}

// callTool calls a tool, and shows its progress on a terminal. When ctx ends, it cancels the call.
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
		call.Peer = selfhost.NotifyFunc(func(_ string, params json.RawMessage) {
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
			// dynmcp must not end before it has forwarded the cancellation. It has when it answers
			// the next request.
			fence, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer stop()
			_, _ = conn.Call(fence, "ping", nil)
			return nil, cli.ErrInterrupted
		}
		<-done // the answer has arrived already
	}
	return result, err
}

// fraction formats the progress of a call. A total of 0 is unknown.
func fraction(progress, total float64) string {
	if total > 0 {
		return fmt.Sprintf("%.0f%%", 100*progress/total)
	}
	return fmt.Sprintf("%g", progress)
}

// ReadObject returns the arguments that are given as one object, with a flag or on stdin, or nil
// if they are given as words.
func ReadObject(cmd *cobra.Command, flag string, words []string) (json.RawMessage, error) {
	given := cmd.Flags().Lookup(flag)
	text, from := given.Value.String(), "--"+flag
	switch {
	case given.Changed && len(words) > 0:
		return nil, hint.With(fmt.Errorf("%s and %q: the arguments are given twice", from, words[0]), "use %s or key=value", from)
	case given.Changed:
	case len(words) == 1 && (words[0] == "-" || strings.HasPrefix(words[0], "{")): // also after --json, which took it once
		text = words[0]
	default:
		return nil, checkWords(words, "write key=value, key:=json, "+from+" '{…}', or - to read JSON from stdin")
	}
	if text == "-" {
		all, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
		text, from = string(all), "stdin"
	}
	const example = `for example {"path": "README.md"}; mind the shell's quoting`
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, hint.With(fmt.Errorf("%s: the arguments are not JSON: %v", from, err), example)
	}
	if !bytes.HasPrefix(value, []byte("{")) {
		return nil, hint.With(fmt.Errorf("%s: the arguments must be a JSON object", from), example)
	}
	return value, nil
}

// toolError adds the tool to an error, and the code and data of a JSON-RPC error.
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

const describeHint = "dynmcp describe %s shows what it takes"

// What the discover surface writes above the input schema of a tool that complains of its input, and
// what a person reads instead, who has given arguments and no tool_input.
const (
	schemaForModels = ", which tool_input has to fit:"
	schemaForPeople = ", which the arguments have to fit:"
)

// print prints a result. answered reports that it is the server's, and not dynmcp's own text about a call
// that it refused or lost.
func (f *callFlags) print(out *terminal.Writer, tool *catalog.Tool, result json.RawMessage, answered bool) error {
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
	case r.IsError && !answered:
	case len(r.Content) == 0 && r.Structured != nil:
		out.Printf("%s\n", indentedJSON(r.Structured))
	default:
		for _, c := range r.Content {
			out.Printf("%s\n", trimEnd(c.describe("--raw")))
		}
	}
	err = fmt.Errorf("%s reports an error", tool.Name)
	switch {
	case out.Err != nil || !r.IsError:
		return out.Err
	case !answered && len(r.Content) > 0:
		return cli.MessageError(r.Content[0].Text)
	case bytes.Contains(result, []byte(schemaForPeople)): // the schema has just been printed
	case bytes.Contains(result, fmt.Append(nil, wire.CodeInvalidParams)): // as SDKs of servers write it
		return hint.With(err, describeHint, tool.Name)
	}
	return err
}
