package farside

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/packages"
)

// A passer is a client that starts a program elsewhere and gives it no name that is known here. The program
// ends by the end of its stdin, which the client passes on: no signal reaches it there.
type passer struct {
	verb   string   // the word with which it does, "" for none
	valued []string // its options before the verb that take a value
	after  []string // its options after the verb that take one
	where  string   // the program runs
	input  []string // the options without which the program gets no stdin, nil if it gets it always
	hurts  []hurt
}

// A hurt is an option with which the program is no server.
type hurt struct {
	options []string
	twice   bool // it counts only if it is given twice
	why     string
}

const (
	noInput  = "the server gets no input"
	terminal = "the server runs on a terminal, which repeats its input and changes its lines"
)

// execs are the options of docker exec and podman exec that take a value.
var execs = []string{"-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "--detach-keys", "--preserve-fds", "--cidfile"}

// passers are the clients that pass their stdin on.
//
// ssh: a session without a terminal gets no signal when the connection goes: the client sends none, though RFC
// 4254, 6.9, would let it, and sshd hangs up only a terminal. -tt would have one, and break the lines (ssh(1), -t: "Multiple -t
// options force tty allocation, even if ssh has no local tty"); a single -t does nothing without a local one.
// -n "redirects stdin from /dev/null" (ssh(1)), and -f implies -n. ServerAliveInterval of ssh_config(5) ends the client of a
// lost connection, not the far side: that is ClientAliveInterval of sshd_config(5).
//
// kubectl exec: "-i, --stdin: Pass stdin to the container", false by default; -t is left out where stdin is no
// terminal ("Unable to use a TTY"). The API has no call that signals or ends what exec started.
//
// docker exec, podman exec: "-i, --interactive: Keep STDIN open even if not attached"; "-d: run command in the
// background". docker refuses -t beside -i where stdin is no terminal ("the input device is not a TTY"), podman
// only warns. Neither passes signals on, and to end the process from outside its pid in the container is needed,
// which neither tells.
//
// wsl: wsl.exe passes stdin on; wsl --terminate would end the whole distribution.
var passers = map[string]passer{
	"ssh": {
		where: "on the other machine",
		valued: []string{"-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-P", "-p", "-Q", "-R",
			"-S", "-W", "-w"},
		hurts: []hurt{{options: []string{"-n", "-f"}, why: noInput}, {options: []string{"-t"}, twice: true, why: terminal}},
	},
	"kubectl": {
		verb: "exec", where: "in the pod", input: []string{"-i", "--stdin"},
		valued: []string{"-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server", "--token", "--as", "--as-group",
			"--request-timeout", "-v"},
		after: []string{"-c", "--container", "-f", "--filename", "-n", "--namespace", "--context", "--kubeconfig", "--pod-running-timeout"},
	},
	"docker": {
		verb: "exec", where: "in the container", input: []string{"-i", "--interactive"}, valued: engine.valued, after: execs,
		hurts: []hurt{{options: []string{"-t", "--tty"}, why: "docker refuses it where its input is no terminal"},
			{options: []string{"-d", "--detach"}, why: noInput}},
	},
	"podman": {
		verb: "exec", where: "in the container", input: []string{"-i", "--interactive"}, valued: engine.valued, after: execs,
		hurts: []hurt{{options: []string{"-t", "--tty"}, why: terminal}, {options: []string{"-d", "--detach"}, why: noInput}},
	},
	"wsl": {where: "in the distribution", valued: []string{"-d", "--distribution", "-u", "--user", "--cd", "--shell-type"}},
}

// A Passed is a program elsewhere that ends by its stdin.
type Passed struct {
	// Client is what starts it, such as "docker exec"; Where says where it runs.
	Client, Where string
	// Missing is the option without which it gets no input, "" if that is there.
	Missing string
	// Hurts are the options with which it is no server.
	Hurts []Lack
}

// ByStdin returns what a command line starts elsewhere that ends by its stdin, nil if it starts no such thing.
func ByStdin(command string, args []string) *Passed {
	at := skipWrappers(command, args)
	if at < 0 {
		return nil
	}
	program := command
	if at > 0 {
		program = args[at-1]
	}
	base := packages.Program(program)
	c, ok := passers[base]
	if !ok {
		return nil
	}
	options := optionsOf(args[at:], c.valued, true)
	out := &Passed{Client: base, Where: c.where}
	if c.verb != "" {
		at += len(options)
		if at < len(args) && args[at] == "container" {
			at++
		}
		if at >= len(args) || args[at] != c.verb {
			return nil
		}
		options = optionsOf(args[at+1:], c.after, true)
		out.Client += " " + c.verb
		if rest := args[at+1+len(options):]; base == "kubectl" && len(rest) > 0 { // it has options after the pod, too
			if end := slices.Index(rest, "--"); end > 0 {
				options = slices.Concat(options, rest[:end])
			}
		}
	} else if at+len(options) >= len(args) && base == "ssh" {
		return nil // no machine, such as ssh -V
	}
	given := lettersOf(options, slices.Concat(c.valued, c.after))
	if len(c.input) > 0 && !slices.ContainsFunc(c.input, func(o string) bool { return slices.Contains(given, o) }) {
		out.Missing = c.input[0]
	}
	for _, h := range c.hurts {
		n := 0
		for _, option := range given {
			if slices.Contains(h.options, option) {
				n++
			}
			if n == 1 && !h.twice || n == 2 {
				out.Hurts = append(out.Hurts, Lack{option, h.why})
				break
			}
		}
	}
	return out
}

// lettersOf returns options without their values, and each letter of one such as -it as one. valued are those
// that take a value.
func lettersOf(options, valued []string) (all []string) {
	for i := 0; i < len(options); i++ {
		name, value, joined := strings.Cut(options[i], "=")
		switch {
		case joined && value == "false" || !strings.HasPrefix(name, "-"):
		case strings.HasPrefix(name, "--"):
			all = append(all, name)
			if !joined && slices.Contains(valued, name) {
				i++
			}
		default:
			for j := 1; j < len(name); j++ {
				letter := "-" + name[j:j+1]
				all = append(all, letter)
				if slices.Contains(valued, letter) {
					if j+1 == len(name) && !joined {
						i++
					}
					break // the rest is its value
				}
			}
		}
	}
	return all
}
