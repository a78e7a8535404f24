package hosts

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Aggregator returns what the server is if it is dynmcp with a config, or the other program of that
// name, whose configs dynmcp reads, or "". Taken over into that config, it would start itself without
// end.
func (s *Server) Aggregator() string {
	switch _, other, ok := dynmcpArgs(s.Command, s.Args); {
	case !ok:
		return ""
	case other:
		return "another program called dynmcp, whose config dynmcp reads with -c"
	}
	return "dynmcp itself"
}

// DynmcpArgs returns the arguments with which a command line runs dynmcp on a config,
// directly, through a launcher or a shell, or wrapped by another dynmcp. It returns false
// if the command line runs another program.
func DynmcpArgs(command string, args []string) ([]string, bool) {
	own, other, ok := dynmcpArgs(command, args)
	return own, ok && !other
}

func dynmcpArgs(command string, args []string) (own []string, other, ok bool) {
	words := append([]string{command}, args...)
	if len(words) == 3 && words[1] == "-c" && slices.Contains([]string{"sh", "bash", "dash", "zsh"}, programName(words[0])) {
		words = strings.Fields(words[2])
	}
	at, other := dynmcpAt(words)
	if at < 0 {
		return nil, false, false
	}
	own = words[at+1:]
	if dash := slices.Index(own, "--"); dash >= 0 && dash+1 < len(own) {
		return dynmcpArgs(own[dash+1], own[dash+2:])
	}
	return own, other, true
}

// unwrap removes "dynmcp --" from the front of the command line.
func (s *Server) unwrap() {
	words := s.commandLine()
	for {
		at, _ := dynmcpAt(words)
		if at < 0 {
			break
		}
		dash := slices.Index(words[at:], "--") + at
		if dash < at || dash+1 == len(words) {
			return
		}
		var env []string // with the variables that the command still needs
		if programName(words[0]) == "env" {
			env = words[:at]
		}
		words = slices.Concat(env, words[dash+1:])
	}
	if old := s.commandLine(); len(words) < len(old) {
		s.Command, s.Args = words[0], words[1:]
		s.note("the dynmcp in front of its command is left out")
	}
}

func (s *Server) commandLine() []string {
	if s.Command == "" {
		return nil
	}
	return append([]string{s.Command}, s.Args...)
}

// launchers are programs besides the runners of npm packages that run the program named in their arguments.
var launchers = []string{"env", "exec", "nohup", "cmd", "go"}

// dynmcpAt returns the index of the word that runs dynmcp in a command line, or -1, and whether that is
// the npm package dynmcp, which is another program.
func dynmcpAt(words []string) (at int, other bool) {
	if len(words) == 0 {
		return -1, false
	}
	name := programName(words[0])
	if name == "dynmcp" || command.IsThisProgram(schema.Server{Command: words[0]}) {
		return 0, false
	}
	npm := packages.RunsNPM(name)
	if !npm && !slices.Contains(launchers, name) {
		return -1, false
	}
	for i := 1; i < len(words); i++ {
		word := words[i]
		if pkg, ok := strings.CutPrefix(word, "--package="); ok && isPackage(pkg) {
			npm = false // the word names its program
		}
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") || word == "/c" || word == "run" && name == "go" {
			continue
		}
		if npm && strings.HasPrefix(word, "@") && !isPackage(word) {
			break
		}
		if at, other := dynmcpAt(words[i:]); at >= 0 {
			return i + at, other || npm && (word == "dynmcp" || strings.HasPrefix(word, "dynmcp@"))
		}
		break
	}
	return -1, false
}

// isPackage reports whether a word of npx is the package of dynmcp, with a version or without.
func isPackage(word string) bool {
	version, ok := strings.CutPrefix(word, cli.Package)
	return ok && (version == "" || version[0] == '@')
}

// programName returns the name of a program without directory, suffix and version.
func programName(word string) string {
	name, _, _ := strings.Cut(filepath.Base(word), "@")
	return packages.Program(name)
}

// withoutRelay replaces the command "mcp-remote ADDRESS", which logs in and relays messages,
// by the address: dynmcp logs in by itself. A command with more arguments or with variables
// stays as it is.
func (s *Server) withoutRelay() {
	words := s.commandLine()
	if len(words) > 0 && packages.RunsNPM(programName(words[0])) {
		words = words[1:]
		for len(words) > 0 && (words[0] == "-y" || words[0] == "--yes") {
			words = words[1:]
		}
	}
	if len(words) != 2 || len(s.Env) > 0 || words[0] != "mcp-remote" && !strings.HasPrefix(words[0], "mcp-remote@") {
		return
	}
	address, err := url.Parse(words[1])
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" {
		return
	}
	s.Transport, s.URL = "", words[1] // dynmcp detects the transport
	s.Command, s.Args, s.Cwd = "", nil, ""
	s.note("mcp-remote is left out; log in once with: dynmcp login")
}
