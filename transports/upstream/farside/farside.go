// Package farside ends what a command started outside of its own processes. Where a command is only the
// client of a container engine or of systemd, what it started goes on when the client is killed.
//
// The table of clients says how what each starts gets a name that is known here, and which command ends
// what has that name. The far sides of ssh, kubectl exec, docker exec and wsl have no name: they end when
// their stdin does, which is what happens here first. A second table says what they need for that.
package farside

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/packages"
)

// A Side is the command line of a client whose far side can be ended.
type Side struct {
	// Args are the arguments of the command, with which the far side has a name.
	Args []string
	// File is the file into which the client writes that name, "" if Name is it.
	File, Name string
	// End is the command that ends the far side. [guard.Mark] stands for its name.
	End []string
}

// A client is a program that starts something outside of its own processes.
type client struct {
	verbs  []string // the words with which it does, "" for none
	valued []string // its options before the verb that take a value
	flags  []string // its options after the verb that take none
	file   string   // its option for the file that gets the name, "" if there is none
	name   []string // its options for the name
	add    []string // what is added to its options, too
	not    string   // the option with which nothing outlives it
	ender  string   // the program that ends the far side, "" for the client itself with its words before the verb
	end    []string // the other words of that
	kept   string   // the option that ender has, too
}

var (
	engine = client{
		verbs: []string{"run", "container run"}, file: "--cidfile", name: []string{"--name"}, end: []string{"kill", guard.Mark},
		valued: []string{"-H", "--host", "-c", "--context", "--config", "-l", "--log-level", "--tlscacert", "--tlscert", "--tlskey", "--connection", "--url",
			"--identity", "--root", "--runroot", "--storage-driver", "--storage-opt", "--cgroup-manager", "--namespace", "-n", "--address", "-a"},
		flags: []string{"-i", "-t", "-it", "-ti", "-d", "-P", "--rm", "--init", "--interactive", "--tty", "--detach", "--privileged", "--publish-all",
			"--no-healthcheck", "--oom-kill-disable", "--read-only", "-q", "--quiet", "--sig-proxy", "--tls-verify"},
	}
	compose = client{
		verbs: []string{"run"}, name: []string{"--name"}, end: []string{"kill", guard.Mark},
		valued: []string{"-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory", "--parallel", "--ansi", "--progress"},
		flags: []string{"-T", "-i", "-it", "-d", "--rm", "--build", "--no-deps", "--no-TTY", "--service-ports", "--use-aliases", "--interactive",
			"--detach", "--quiet-pull", "--remove-orphans", "-P", "-q", "--quiet"},
	}
	clients = map[string]client{
		"docker": engine, "podman": engine, "nerdctl": engine,
		"docker compose": compose, "podman compose": compose, "nerdctl compose": compose,
		"systemd-run": {
			verbs: []string{""}, name: []string{"--unit", "-u"}, add: []string{"--collect"}, not: "--scope",
			ender: "systemctl", end: []string{"kill", "--signal=SIGKILL", guard.Mark}, kept: "--user",
			flags: []string{"--user", "--system", "--pipe", "-P", "--wait", "-q", "--quiet", "-t", "--pty", "-d", "--same-dir", "-G", "--collect", "-r", "-S", "--shell"},
		},
	}
)

// Of returns how a command is started so that its far side can be ended. dir is a directory for the file
// with the name, id a name that nothing else has. It is nil for a command that starts only processes of
// its own.
func Of(command string, args []string, dir, id string) *Side {
	at := skipWrappers(command, args)
	if at < 0 {
		return nil
	}
	program := command
	if at > 0 {
		program = args[at-1]
	}
	base := packages.Program(program)
	c, ok := clients[base]
	verb := at + len(optionsOf(args[at:], c.valued, true))
	if verb < len(args) && args[verb] == "compose" {
		c, ok = clients[base+" compose"]
		c.end = slices.Concat(args[at:verb], c.end) // kill is no verb of compose for one container
		verb++
		verb += len(optionsOf(args[verb:], c.valued, true))
	} else if c.ender == "" {
		c.end = slices.Concat(args[at:verb], c.end)
	}
	first, found := c.firstOption(args, at, verb)
	if !ok || !found {
		return nil
	}
	options := optionsOf(args[first:], c.flags, false)
	if c.not != "" && slices.Contains(options, c.not) {
		return nil
	}
	side := &Side{Args: args, End: slices.Concat([]string{command}, args[:at], c.end)}
	if c.ender != "" {
		side.End = slices.Concat([]string{c.ender}, c.end)
		if slices.Contains(options, c.kept) {
			side.End = slices.Insert(side.End, 1, c.kept)
		}
	}
	if strings.HasPrefix(program, "/snap/") {
		c.file = "" // it sees no directory of ours
	}
	var added string
	switch given := ""; {
	case c.file != "":
		if given = value(options, c.file); given == "" {
			given = filepath.Join(dir, id)
			added = c.file + "=" + given
		}
		side.File = given
	default:
		if given = value(options, c.name...); given == "" {
			given = id
			added = c.name[0] + "=" + given
		}
		side.Name = given
	}
	if added != "" {
		side.Args = slices.Insert(slices.Clone(args), first, append([]string{added}, c.add...)...)
	}
	return side
}

// A Lack is an option without which a container is no good server.
type Lack struct{ Option, Why string }

// Lacks returns the options that a command line lacks which runs a container, nil for any other.
func Lacks(command string, args []string) (lacks []Lack) {
	side := Of(command, args, "", "")
	if side == nil || !slices.Contains(side.End, "kill") || side.End[0] == "systemctl" {
		return nil
	}
	has := func(short string, long ...string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			name, value, _ := strings.Cut(arg, "=")
			bundle := short != "" && len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, short)
			return value != "false" && slices.Contains(long, name) || bundle
		})
	}
	if !has("i", "--interactive") && !slices.Contains(args, "compose") {
		lacks = append(lacks, Lack{"-i", "the server in the container gets no input"})
	}
	if !has("", "--rm") {
		lacks = append(lacks, Lack{"--rm", "each start leaves a stopped container"})
	}
	if !has("", "--init") && !slices.Contains(args, "compose") {
		lacks = append(lacks, Lack{"--init", "a server that does not handle SIGTERM is killed after a pause"})
	}
	return lacks
}

// skipWrappers returns the place of the first argument of the program that a command runs through sudo or env,
// -1 if there is none.
func skipWrappers(command string, args []string) (at int) {
	for program := packages.Program(command); program == "sudo" || program == "env"; {
		next := slices.IndexFunc(args[at:], func(arg string) bool { return !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") })
		if next < 0 {
			return -1
		}
		at += next + 1
		program = packages.Program(args[at-1])
	}
	return at
}

// firstOption returns the place of the first option of the client's verb, which is at verb.
func (c client) firstOption(args []string, at, verb int) (first int, found bool) {
	for _, words := range c.verbs {
		if words == "" {
			return at, true
		}
		after := verb + strings.Count(words, " ") + 1
		if after <= len(args) && strings.Join(args[verb:after], " ") == words {
			return after, true
		}
	}
	return 0, false
}

// optionsOf returns the options that args begin with, and their values. known are those that take a value or,
// unless valued, those that take none.
func optionsOf(args, known []string, valued bool) []string {
	n := 0
	for n < len(args) && strings.HasPrefix(args[n], "-") && args[n] != "--" {
		if !strings.Contains(args[n], "=") && slices.Contains(known, args[n]) == valued {
			n++
		}
		n++
	}
	return args[:min(n, len(args))]
}

// value returns the value of the first of the options with one of the names, "" if none has.
func value(options []string, names ...string) string {
	for i, option := range options {
		name, value, joined := strings.Cut(option, "=")
		switch {
		case !slices.Contains(names, name):
		case joined:
			return value
		case i+1 < len(options):
			return options[i+1]
		}
	}
	return ""
}
