package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
)

// systemCall matches the error of a system call as Go prints it.
var systemCall = regexp.MustCompile(`\b(stat|lstat|open|openat|read|write|rename|mkdir|link|bind|chdir|dial \w+|listen (tcp|unix)) \S*: |: no such file or directory`)

// missing is a file in a directory that is not there.
const missing = "nodir/none.x"

// placeholders are the arguments of verbs in their lines of usage, with values for the test.
var placeholders = map[string]string{
	"FILE": missing, "FILE.js|-": missing, "NAME": "a", "NAME…": "a", "SERVER": "a", "SERVER/TOOL": "a/b", "HOST": "codex", "HOST…": "codex", "PROFILE": "p",
	"WORDS…": "w", "ID": "1", "once|session|no": "no", "SERVER | SERVER/TOOL": "a", "-o": "-o",
}

// besides are the flags without which others are not looked at, by verb, and by a flag's name or what
// that begins with.
var besides = map[string]string{
	"serve": "--http 127.0.0.1:0", "set": "--enabled", "ui": "--no-open", "add": "--force --command nothing",
	"cluster-": "--cluster NATS --cluster-key key", "peer-": "--cluster NATS --cluster-key key --peer-addr 127.0.0.1:0",
	"tls-cert": "--tls-key " + missing, "tls-key": "--tls-cert " + missing,
}

// unread are the flags whose file a verb only names, or reads when the page asks for it.
var unread = []string{"ui --config", "ui --env-file", "ui --env", "use --config"}

// dialed are the flags whose addresses are not listened on.
var dialed = []string{"url", "openapi", "registry", "schema", "peer-advertise"}

// Every verb that opens a file or listens says in words what is wrong: for each flag and argument
// for a file that is not there, and for each address that another program holds.
func TestFilesAndAddressesInWords(t *testing.T) {
	t.Parallel()
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	nats := natstest.Start(t, "").URL
	run := func(line ...string) (string, error) {
		dir := t.TempDir()
		for name, text := range map[string]string{"mcp.json": `{"mcp":{"a":{"url":"http://127.0.0.1:9/mcp","description":"A"}}}`, "key": strings.Repeat("0", 64)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t), line...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), cmp.Or(ctx.Err(), err)
	}
	if out, err := run("cluster", "push", "mcp.json", "--cluster", nats, "--cluster-key", "key"); err != nil {
		t.Fatal(err, out)
	}
	check := func(flag, value string, line []string) {
		out, err := run(line...)
		switch {
		case errors.Is(err, context.DeadlineExceeded), systemCall.MatchString(out):
		case value == missing && (err == nil || strings.Contains(out, filepath.Dir(missing)) || strings.Contains(out, "--"+flag)):
			return
		case value != missing && err != nil && strings.Contains(out, "is in use"):
			return
		}
		t.Errorf("%s: %v\n%s", strings.Join(line, " "), err, out)
	}
	walk(rootCommand(), func(cmd *cobra.Command) {
		line := strings.Fields(cmd.CommandPath())[1:]
		words := arguments(cmd)
		for _, word := range words {
			value := placeholders[word]
			if value == "" {
				t.Errorf("%s: the test has no value for %s", cmd.CommandPath(), word)
			}
			line = append(line, value)
		}
		if slices.Contains(line, missing) {
			check("", missing, line)
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if slices.Contains(unread, cmd.Name()+" --"+flag.Name) {
				return
			}
			var value string
			switch word, _ := pflag.UnquoteUsage(flag); word {
			case "file", "directory", "socket":
				value = missing
			case "address":
				if value = held.Addr().String(); slices.Contains(dialed, flag.Name) {
					return
				}
			default:
				return
			}
			verb := cmd.Name()
			if cmd.Parent().HasParent() { // set of the config is another one than credential set
				verb = cmd.Parent().Name() + " " + verb
			}
			more := besides[verb] + " " + cmp.Or(besides[flag.Name], besides[flag.Name[:strings.IndexByte(flag.Name, '-')+1]])
			check(flag.Name, value, slices.Concat(line, strings.Fields(strings.ReplaceAll(more, "NATS", nats)), []string{"--" + flag.Name, value}))
		})
	})
}

// walk calls visit with every command that does something.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, below := range cmd.Commands() {
		walk(below, visit)
	}
	if cmd.HasParent() && !cmd.HasSubCommands() {
		visit(cmd)
	}
}

var optional = regexp.MustCompile(`\[[^\[\]]*(\[[^\]]*\][^\]]*)?\]`)

// arguments returns the placeholders of arguments that a verb needs, and a file if it takes one.
func arguments(cmd *cobra.Command) (words []string) {
	_, use, _ := strings.Cut(optional.ReplaceAllString(strings.ReplaceAll(cmd.Use, "[FILE]", "FILE"), ""), " ")
	if use = strings.TrimSpace(use); placeholders[use] != "" {
		return []string{use}
	}
	return strings.Fields(use)
}
