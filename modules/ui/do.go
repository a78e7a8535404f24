package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

// maxOutput limits the displayed output of a command.
const maxOutput = 8 << 20

// An order is a request of the page to run an act at a place.
type order struct {
	Place, Act, Server, Tool, Text, Arguments string

	Show bool // show the change of the config without writing it

	Description, URL string // of a server to add

	// For adding the server of a registry that is called Server.
	Version, Via, As, Secrets string
	Sandbox                   bool
	Answers                   map[string]string

	// For adding the operations of an OpenAPI document as Server: its address or file, and the tags of
	// those that are taken. They are sent to URL if the document does not say where.
	OpenAPI, Tags string
}

// A done is the result of an order.
type done struct {
	Command string `json:"command"`
	Output  string `json:"output"`
	Errors  string `json:"errors"`
	OK      bool   `json:"ok"`
}

// An act is a command that the page can run. So that texts of the page cannot be options, they
// follow an equals sign or "--", or are names without a leading hyphen.
type act struct {
	args  func(o order) []string
	last  func(o order) []string // follow all flags; nil if none
	write string                 // the flag without which nothing is written; "" where --dry-run says so
	in    func(o order) []byte   // for stdin, which other users cannot read; nil if none
	on    string                 // "run", "config", "file" (a config without its variables), or ""
	asks  bool                   // changes nothing
}

var acts = map[string]act{
	"start":    {on: "run", args: func(o order) []string { return []string{"start", o.Server, "--run", o.Place} }},
	"stop":     {on: "run", args: func(o order) []string { return []string{"stop", o.Server, "--run", o.Place} }},
	"restart":  {on: "run", args: func(o order) []string { return []string{"restart", o.Server, "--run", o.Place} }},
	"enable":   {on: "config", args: func(o order) []string { return []string{"set", o.Server, "--enabled"} }},
	"disable":  {on: "config", args: func(o order) []string { return []string{"set", o.Server, "--disabled"} }},
	"describe": {on: "config", args: func(o order) []string { return []string{"set", o.Server, "--description=" + o.Text} }},
	"set":      {on: "config", last: order.hyphened, args: func(o order) []string { return append([]string{"set", o.Server}, o.plain()...) }},
	"unset":    {on: "config", args: func(o order) []string { return []string{"set", o.Server, "--unset=" + o.Text} }},
	"remove":   {on: "file", args: func(o order) []string { return []string{"remove", o.Server} }},
	"use":      {on: "run", last: order.hyphened, args: func(o order) []string { return append(append([]string{"use"}, o.plain()...), "--run", o.Place) }},
	"import":   {on: "file", write: "--write", args: func(o order) []string { return []string{"import", o.Server, "--vars"} }},
	"addurl":   {on: "file", args: func(o order) []string { return append([]string{"add", o.Server, "--url=" + o.URL}, o.described()...) }},
	"addcommand": {on: "file", args: func(o order) []string { return append([]string{"add", o.Server}, o.described()...) }, last: func(o order) []string {
		words, _ := secretref.Split(o.Text) // checked by do
		return append([]string{"--"}, words...)
	}},
	"answer": {on: "run", args: func(o order) []string { return []string{"answer", "--", o.Server, o.Text} }},
	"call": {on: "config", in: func(o order) []byte { return []byte(o.Arguments) }, args: func(o order) []string {
		return []string{"call", o.Server + "/" + o.Tool, "--raw", "--arguments=-"}
	}},
	"approve": {on: "config", args: func(o order) []string {
		return []string{"approve", strings.TrimSuffix(o.Server+"/"+o.Tool, "/"), "--all"}
	}},
	"test":    {on: "config", args: func(o order) []string { return []string{"test", o.Server} }},
	"find":    {args: func(o order) []string { return []string{"search", "--json", "--", o.Text} }},
	"add":     {on: "file", args: order.add, in: order.answers},
	"add api": {on: "file", args: order.addAPI},
	"diff":    {on: "config", asks: true, args: func(o order) []string { return []string{"diff", o.Server} }},
	"logins":  {on: "config", asks: true, args: func(order) []string { return []string{"ls", "--json"} }},
	"doctor":  {on: "config", asks: true, args: func(order) []string { return []string{"doctor", "--json", "--no-start"} }},
}

// add returns the arguments of dynmcp add. The answers, which may be secrets, are passed on stdin,
// because every user of the machine can read arguments.
func (o order) add() []string {
	args := []string{"add", strings.TrimSuffix(o.Server+"@"+o.Version, "@"), "--via=" + o.Via, "--name=" + o.As, "--answers=-", "--yes"}
	if o.Secrets != "" {
		args = append(args, "--secrets="+o.Secrets)
	}
	if o.Sandbox {
		args = append(args, "--sandbox")
	}
	return args
}

// addAPI returns the arguments of dynmcp add whose output has the operations of a document by tag.
func (o order) addAPI() []string {
	args := []string{"add", o.Server, "--openapi=" + o.OpenAPI, "--yes"}
	if o.URL != "" {
		args = append(args, "--url="+o.URL)
	}
	if o.Tags != "" {
		args = append(args, "--tags="+o.Tags)
	}
	return args
}

// described returns the flag of the description, which makes a server lazy.
func (o order) described() []string {
	if o.Description == "" {
		return nil
	}
	return []string{"--description=" + o.Description}
}

// answers returns the answers to the questions of an added server.
func (o order) answers() []byte {
	text, _ := json.Marshal(o.Answers) // texts always marshal
	return text
}

// plain returns the text, unless it would be an option.
func (o order) plain() []string {
	if strings.HasPrefix(o.Text, "-") {
		return nil
	}
	return []string{o.Text}
}

// hyphened returns the text that plain leaves out, so that it is no option.
func (o order) hyphened() []string {
	if strings.HasPrefix(o.Text, "-") {
		return []string{"--", o.Text}
	}
	return nil
}

// do runs the command of an order.
func (s *server) do(ctx context.Context, o order) (*done, error) {
	act, ok := acts[o.Act]
	switch {
	case !ok || strings.HasPrefix(o.Server, "-"):
		return nil, fmt.Errorf("unknown act %q of %q", o.Act, o.Server)
	case s.fixed && !act.asks:
		return nil, hint.With(errors.New("this page changes nothing"), `"ui": "change" in the gateway of the config lets it`)
	}
	p, err := s.at(ctx, o.Place)
	if err != nil {
		return nil, err
	}
	if _, err := secretref.Split(o.Text); o.Act == "addcommand" && err != nil {
		return nil, fmt.Errorf("the command %q: %w", o.Text, err)
	}
	args := act.args(o)
	if act.on == "config" || act.on == "file" {
		if p.Config == "" {
			return nil, errors.New("this run has no config: dynmcp add puts its command into one")
		}
		args = append(args, "-c", p.Config)
	}
	if file := s.flags(p).EnvFile; act.on == "config" && file != "" {
		args = append(args, "-e", file)
	}
	shown, given := args, args // the command that a person would give, and the one that runs
	if act.write != "" {
		shown = append(slices.Clip(args), act.write)
	}
	switch {
	case !o.Show:
		given = shown
	case act.write == "":
		given = append(slices.Clip(args), "--dry-run")
	}
	if act.last != nil {
		shown, given = append(slices.Clip(shown), act.last(o)...), append(slices.Clip(given), act.last(o)...)
	}
	cmd := exec.CommandContext(ctx, s.program, given...)
	if p.Config != "" {
		cmd.Dir = filepath.Dir(p.Config)
	}
	if act.in != nil {
		cmd.Stdin = bytes.NewReader(act.in(o))
	}
	var out, errs bounded
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	s.mu.Lock()
	s.last = nil // the page asks what has changed
	s.mu.Unlock()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return nil, err
	}
	if i := slices.Index(shown, "--arguments=-"); i >= 0 { // for a person who repeats it
		shown[i] = "--arguments=" + o.Arguments
	}
	return &done{Command: shellescape.QuoteCommand(append([]string{"dynmcp"}, shown...)), Output: out.String(), Errors: errs.String(), OK: err == nil}, nil
}

// A bounded keeps the first maxOutput bytes that are written to it.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(text []byte) (int, error) {
	b.Buffer.Write(text[:min(len(text), maxOutput-b.Len())])
	return len(text), nil
}
