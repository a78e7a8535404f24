// Package inspect has the verb inspect, which prints the messages of a run or of a recording.
package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Verb shows messages.
var Verb = cli.Verb{
	Use:   "inspect [flags] [FILE]",
	Group: cli.Develop,
	Short: "Watch the messages of a run",
	Long: `Show each message that passes a run of dynmcp, from now on: those of its hosts, and those
of its servers. An arrow to the right is a message that dynmcp sends, one to the left a
message that it receives. Secrets of the config are taken out. With FILE the messages of
a recording are shown. With --output they are written into a file, as dynmcp record writes
those of a run from its beginning.

A response is shown with the method of its request, and with the time that it took.`,
	Example: `  dynmcp inspect
  dynmcp inspect --server files --method 'tools/*' --pretty
  dynmcp inspect --errors run.jsonl
  dynmcp inspect -o run.jsonl`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		i := &inspector{asked: map[string]message{}}
		pid := cmd.Flags().Int("run", 0, "the process `id` of the run")
		cmd.Flags().StringVar(&i.server, "server", "", "show only the messages of this `server`")
		cmd.Flags().StringVar(&i.method, "method", "", "show only messages of this `method`, or of those like tools/*")
		cmd.Flags().BoolVar(&i.errors, "errors", false, "show only requests that failed, and why")
		cmd.Flags().BoolVar(&i.pretty, "pretty", false, "show the whole of each message, indented")
		cmd.Flags().BoolVar(&i.json, "json", false, "print the messages as a recording")
		i.file.Add(cmd, "output", "o", "record the messages in this `file`, and show none")
		cli.AddOld(cmd, "output", "write")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			i.out = cli.Stdout(cmd)
			if _, err := path.Match(i.method, ""); err != nil {
				return fmt.Errorf("--method %q: %w", i.method, err)
			}
			if len(args) == 0 {
				return i.run(ctx, *pid, cli.Stderr(cmd))
			}
			header, lines, err := recording.Read(ctx, args[0])
			if err != nil {
				return err
			}
			if err := i.begin(header, cli.Stderr(cmd)); err != nil {
				return err
			}
			for _, l := range lines {
				i.show(l)
			}
			return i.end()
		})
	},
}

// An inspector prints the selected messages.
type inspector struct {
	server, method       string
	errors, pretty, json bool
	out                  *terminal.Writer
	file                 Output
	lines                io.Writer // gets the messages as lines of a recording; nil to show them
	failed               error     // of lines
	began                time.Time
	asked                map[string]message // requests without a response, by connection, direction and id
}

// A message is a recorded message.
type message struct {
	wire.Message
	line   recording.Line
	method string  // for a response, that of its request
	took   float64 // for a response, in milliseconds; 0 if unknown
}

func (i *inspector) run(ctx context.Context, pid int, errOut *terminal.Writer) error {
	run, err := runs.Choose(runs.Find(ctx, 0), pid, "messages to show", func(runs.Found) bool { return true })
	if err != nil {
		return err
	}
	body, err := run.Messages(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := recording.NewReader(body)
	if err != nil {
		return err
	}
	if err := i.begin(r.Header, errOut); err != nil {
		return err
	}
	if i.out.Interactive && i.lines == nil {
		errOut.Say("Showing the messages of run %d. Control-C ends this.", run.PID)
	}
	for {
		line, err := r.Next()
		switch {
		case ctx.Err() != nil:
			return cmp.Or(i.end(), cli.ErrInterrupted)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			errOut.Say("Run %d has ended.", run.PID)
			return i.end()
		case err != nil:
			return err
		}
		if i.show(line); cmp.Or(i.failed, i.out.Err) != nil {
			return i.end()
		}
	}
}

func (i *inspector) begin(header recording.Header, errOut *terminal.Writer) error {
	i.began = header.Began
	if i.file.Path != "" {
		file, err := i.file.Create(header, errOut)
		if err != nil {
			return err
		}
		i.lines = file
	} else if i.json {
		i.lines = i.out
		_ = json.NewEncoder(i.out).Encode(header) // out keeps the error
	}
	return nil
}

// end ends the output, and returns its first error.
func (i *inspector) end() error {
	err := cmp.Or(i.failed, i.out.Err)
	if file, ok := i.lines.(*recording.File); ok {
		err = cmp.Or(err, file.Close())
	}
	return err
}

func (i *inspector) record(l recording.Line) {
	if _, err := i.lines.Write(l.Append(nil)); i.failed == nil {
		i.failed = err
	}
}

func (i *inspector) show(l recording.Line) {
	switch {
	case l.Lost > 0 && i.lines != nil:
		i.record(l)
	case l.Lost > 0:
		i.out.Labelled(terminal.Yellow, "lost: ", fmt.Sprintf("%s that came faster than they could be recorded", display.Plural(int(l.Lost), "message")))
	case i.server == "" || i.server == l.Server:
		for m := range l.Messages() {
			i.message(l, m)
		}
	}
}

func (i *inspector) message(l recording.Line, m wire.Message) {
	one := message{Message: m, line: l, method: m.Method}
	request := func(dir string) string { return fmt.Sprintf("%s %q %q %d %s", dir, l.Host, l.Server, l.Conn, m.ID) }
	if m.Method != "" {
		if m.ID != nil {
			i.asked[request(l.Dir)] = one
		}
		if !i.errors { // with --errors, the request is printed with its response
			i.write(one)
		}
		return
	}
	of := request(map[string]string{"in": "out", "out": "in"}[l.Dir])
	asked, known := i.asked[of]
	delete(i.asked, of)
	if known {
		one.method, one.took = asked.method, l.MS-asked.line.MS
	}
	if i.errors && !one.failed() {
		return
	}
	if i.errors && known {
		i.write(asked)
	}
	i.write(one)
}

// failed reports whether a response is an error or the result of a failed tool.
func (m *message) failed() bool {
	return m.Error != nil || string(wire.Get(m.Result, "isError")) == "true"
}

// write prints a message if its method is selected.
func (i *inspector) write(m message) {
	if match, _ := path.Match(i.method, m.method); i.method != "" && !match {
		return
	}
	if i.lines != nil {
		m.line.Message = m.Raw // only the selected message of a batch
		i.record(m.line)
		return
	}
	head := m.head(i.began)
	i.out.Printf("%s  ", head)
	var indented bytes.Buffer
	if i.pretty && json.Indent(&indented, m.Raw, "  ", "  ") == nil {
		i.out.Printf("\n  %s\n", indented.Bytes())
		return
	}
	text, colour := terminal.OneLine(string(m.Params)+string(m.Result)+string(m.Error)), terminal.Dim // only one of these is set
	if m.failed() {
		colour = terminal.Red
	}
	if i.out.Width > 0 {
		text = terminal.Truncate(text, max(20, i.out.Width-terminal.Columns(head)-2))
	}
	i.out.Paint(colour, text)
	i.out.Printf("\n")
}

// head returns the time, direction, peer, method and id of a message.
func (m *message) head(began time.Time) string {
	at := began.Add(time.Duration(m.line.MS * float64(time.Millisecond))).Local()
	arrow, who, took := "→", m.line.Server, ""
	if m.line.Dir == "in" {
		arrow = "←"
	}
	if m.line.Host != "" {
		who = "host " + m.line.Host
	}
	if m.took > 0 {
		took = fmt.Sprintf("(%.1f ms)", m.took)
	}
	return terminal.OneLine(strings.Join([]string{at.Format("15:04:05.000"), arrow, who, m.method, string(m.ID), took}, " "))
}
