package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
	"github.com/dynmcp/dynmcp/transports/upstream/farside"
)

// checkHostEnvironment reports what works here but would not if a host started dynmcp.
func (d *doctor) checkHostEnvironment(ctx context.Context) {
	if d.Cfg.Path == "" {
		return
	}
	missing, err := hosts.MissingUnder(ctx, d.Cfg, d.Cfg.Sources, d.EnvFile)
	if err != nil {
		return // loading the config has failed and is reported already
	}
	envFile := schema.EnvFileBeside(d.Cfg.Path)
	for _, server := range slices.Sorted(maps.Keys(missing.Directory)) {
		d.add(finding{Check: aboutConfig, Level: warning, Server: server,
			Text: fmt.Sprintf("a host starts dynmcp in another directory, where it would be off: %s only in the .env of this directory", hosts.Are(missing.Directory[server])),
			Hint: fmt.Sprintf("move that to %s, or have the host start dynmcp with -e; dynmcp install does that", envFile)})
	}
	for _, server := range slices.Sorted(maps.Keys(missing.Environment)) {
		d.add(finding{Check: aboutConfig, Level: note, Server: server,
			Text: fmt.Sprintf("with a host started from the desktop it may be off: %s only in the environment of this shell", hosts.Are(missing.Environment[server])),
			Hint: fmt.Sprintf("write that to %s, or to the env of dynmcp's entry in the host", envFile)})
	}
	for _, s := range conf.Enabled(d.Cfg) {
		if file := relativeFile(s); file != "" {
			d.add(finding{Check: aboutCommands, Level: warning, Server: s.Name,
				Text: fmt.Sprintf("a host starts dynmcp in another directory, where %q is not found", file),
				Hint: "write its full path, or give the entry a cwd"})
		}
	}
}

var scriptFile = lazyregexp.New(`\.(?:[cm]?[jt]s|py|rb|sh|jar|json|ya?ml|toml)$`)

// relativeFile returns the first file in the command line of a server that is relative to the
// working directory, or "".
func relativeFile(s schema.Server) string {
	if s.Transport != schema.Stdio || s.Cwd != "" {
		return ""
	}
	for i, word := range append([]string{s.Command}, s.Args...) {
		if filepath.IsAbs(word) || i == 0 && !strings.ContainsAny(word, `/\`) || i > 0 && !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, "../") && !scriptFile().MatchString(word) {
			continue
		}
		if info, err := os.Stat(word); err == nil && !info.IsDir() {
			return word
		}
	}
	return ""
}

// checkHomeArgs reports args in which ~ stays: no shell replaces it.
func (d *doctor) checkHomeArgs(s schema.Server) {
	for _, arg := range s.Args {
		path := arg[strings.Index(arg, "=")+1:]
		if command.BeginsAtHome(path) {
			d.add(finding{Check: aboutCommands, Level: warning, Server: s.Name, Text: fmt.Sprintf("no shell replaces the ~ of its arg %q: the program has to do it", arg),
				Hint: fmt.Sprintf("if it does not, write %q", strings.TrimSuffix(arg, path)+"${HOME}"+path[1:])})
		}
	}
}

// checkFarSide reports what a server elsewhere needs so that it serves, and ends with its client.
func (d *doctor) checkFarSide(s schema.Server) {
	far := farside.ByStdin(s.Command, s.Args)
	if far == nil {
		return
	}
	add := func(level, text, hint string) {
		d.add(finding{Check: aboutCommands, Level: level, Server: s.Name, Text: text, Hint: hint})
	}
	if far.Missing != "" {
		add(warning, fmt.Sprintf("its %s has no %s: the server gets no input", far.Client, far.Missing), fmt.Sprintf("add %s to args, after exec", far.Missing))
	}
	for _, hurt := range far.Hurts {
		add(warning, fmt.Sprintf("its %s has %s: %s", far.Client, hurt.Option, hurt.Why), "take it out of args")
	}
	add(note, fmt.Sprintf("what %s starts ends by the end of its stdin alone: a server that ignores it stays %s", far.Client, far.Where), "")
}
