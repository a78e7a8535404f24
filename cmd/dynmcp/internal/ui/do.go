package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// maxOutput bounds what is shown of a command's output.
const maxOutput = 8 << 20

// An order is what the page wants done at a place.
type order struct {
	Place, Act, Server, Tool, Text, Arguments string

	Show bool // what a change of the config would change, and write nothing
}

// A done is what a command did.
type done struct {
	Command string `json:"command"`
	Output  string `json:"output"`
	Errors  string `json:"errors"`
	OK      bool   `json:"ok"`
}

// acts are the commands of what the page does. Texts of the page follow an equals sign, or are
// names, which do not begin with a hyphen.
var acts = map[string]func(o order) []string{
	"start":    func(o order) []string { return []string{"start", o.Server, "--run", o.Place} },
	"stop":     func(o order) []string { return []string{"stop", o.Server, "--run", o.Place} },
	"restart":  func(o order) []string { return []string{"restart", o.Server, "--run", o.Place} },
	"enable":   func(o order) []string { return o.set("--enabled") },
	"disable":  func(o order) []string { return o.set("--disabled") },
	"describe": func(o order) []string { return o.set("--description=" + o.Text) },
	"call": func(o order) []string {
		return []string{"call", o.Server + "/" + o.Tool, "--raw", "--json=" + o.Arguments}
	},
	"diff":    func(o order) []string { return []string{"diff", o.Server} },
	"approve": func(o order) []string { return []string{"approve", o.target(), "--all"} },
	"logins":  func(order) []string { return []string{"ls", "--json"} },
	"doctor":  func(order) []string { return []string{"doctor", "--json", "--no-start"} },
	"warm":    func(o order) []string { return []string{"warm", o.Server} },
}

func (o order) set(flag string) []string {
	args := []string{"set", o.Server, flag}
	if o.Show {
		args = append(args, "--dry-run")
	}
	return args
}

func (o order) target() string {
	if o.Tool == "" {
		return o.Server
	}
	return o.Server + "/" + o.Tool
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shown writes a command as a shell takes it.
func shown(args []string) string {
	words := []string{"dynmcp"}
	for _, arg := range args {
		if !plainWord().MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// do runs the command of an order.
func (s *server) do(ctx context.Context, o order) (*done, error) {
	act := acts[o.Act]
	if act == nil || strings.HasPrefix(o.Server, "-") {
		return nil, fmt.Errorf("there is no act %q of %q", o.Act, o.Server)
	}
	p, from, err := s.at(ctx, o.Place)
	if err != nil {
		return nil, err
	}
	args := act(o)
	if !slices.Contains(args, "--run") {
		if p.Config == "" {
			return nil, errors.New("this run has no config: dynmcp add puts its command into one")
		}
		if args = append(args, "-c", p.Config); from.EnvFile != "" {
			args = append(args, "-e", from.EnvFile)
		}
	}
	cmd := exec.CommandContext(ctx, s.program, args...)
	if p.Config != "" {
		cmd.Dir = filepath.Dir(p.Config)
	}
	var out, errs bounded
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return nil, err
	}
	return &done{Command: shown(args), Output: out.String(), Errors: errs.String(), OK: err == nil}, nil
}

// A bounded is the beginning of an output.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(text []byte) (int, error) {
	b.Buffer.Write(text[:min(len(text), maxOutput-b.Len())])
	return len(text), nil
}
