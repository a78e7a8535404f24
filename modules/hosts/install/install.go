// Package install has the verb install, which adds dynmcp to the config of a host.
package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/schema"
)

// Verb adds dynmcp to a host.
var Verb = cli.Verb{
	Use:   "install HOST…",
	Group: cli.SetUp,
	Short: "Add dynmcp to a host's config",
	Long: `Add dynmcp to a host's config:
` + hosts.TwoLines(hosts.Installable()) + `.
--all is every host that has a config here.

It shows what it would change and asks. --yes writes without asking; without a
terminal to ask on, nothing is written unless --yes is given. Everything else in
the file stays as it is, and the old file is kept in dynmcp's state directory, where
only you can read it: no backup is overwritten. Values that may be secrets are shown
as ***.

--share has the host share one run of dynmcp, and one process of each server, with
the other hosts that are installed so: it starts dynmcp connect.

--direct has the host see every tool as itself, server__tool, for hosts with a tool
search of their own. Servers are listed as they were when they last ran, and none
is started before a call; dynmcp test --store lists those that never ran.

--take-over also takes out of the host what dynmcp's config has, as import put it
there: otherwise the model has every tool twice. --uninstall gives the old file
back, to the byte if nothing else has changed it since. dynmcp uninstall does that
for all hosts, and removes what else dynmcp made.`,
	Example: `  dynmcp install claude-code -c mcp.json
  dynmcp install cursor -c mcp.json --take-over
  dynmcp install --all --take-over
  dynmcp install cursor --project --yes
  dynmcp install cursor --share -c mcp.json
  dynmcp install claude-code --direct -c mcp.json
  dynmcp install codex --uninstall`,
	Args:  cobra.ArbitraryArgs,
	Words: hosts.Installable(),
	New: func(cmd *cobra.Command) cli.Run {
		var i installer
		f := cmd.Flags()
		f.StringVarP(&i.config, "config", "c", "", "the config `file` that the host's dynmcp reads (default: the one in the working directory, or the user's)")
		f.StringVarP(&i.envFile, "env-file", "e", "", "the `file` that it reads variables from instead of the .env beside the config")
		cli.AddOld(cmd, "env-file", "env")
		f.StringVar(&i.name, "name", "dynmcp", "the `name` that dynmcp has in the host")
		f.BoolVar(&i.all, "all", false, "all hosts that have a config here")
		f.StringVar(&i.path, "file", "", "the host's `file`, if it is not where it usually is")
		f.BoolVar(&i.project, "project", false, "write the host's file of this project, not the user's")
		f.BoolVar(&i.takeOver, "take-over", false, "take the servers out of the host that dynmcp's config has")
		f.BoolVar(&i.share, "share", false, "share one run of dynmcp with the other hosts that are installed so (dynmcp connect)")
		f.BoolVar(&i.direct, "direct", false, "show the host every tool as itself (--expose direct)")
		f.BoolVar(&i.uninstall, "uninstall", false, "remove dynmcp from the host, and give it back what was taken over")
		warm.AddWarmFlag(cmd, &i.warm)
		f.BoolVarP(&i.yes, "yes", "y", false, "write without asking")
		return i.run
	},
}

// An installer adds dynmcp to the config of a host, or removes it.
type installer struct {
	config    string
	envFile   string
	name      string
	path      string // of the host's file, "" for its usual location
	project   bool
	all       bool
	takeOver  bool
	share     bool
	direct    bool
	uninstall bool
	warm      bool
	yes       bool

	// Set by run.
	cmd         *cobra.Command
	out, errOut *terminal.Writer
	host        hosts.Host
	file        *editfile.File // of the host
}

func (i *installer) run(cmd *cobra.Command, args []string) error {
	i.cmd, i.out, i.errOut = cmd, cli.Stdout(cmd), cli.Stderr(cmd)
	chosen, err := i.choose(args)
	if err != nil {
		return err
	}
	if i.uninstall && (i.share || i.direct || i.takeOver) {
		return hint.With(errors.New("--share, --direct and --take-over do not go with --uninstall"), "--uninstall alone removes dynmcp, however it was installed")
	}
	wrote := false
	var failed []error
	for _, h := range chosen {
		one := *i
		one.host = h
		done, err := one.edit()
		if wrote = wrote || done; err != nil && len(chosen) > 1 {
			err = fmt.Errorf("%s: %w", h.Name, err)
		}
		failed = append(failed, err)
	}
	if err := errors.Join(append(failed, i.out.Err)...); err != nil || i.uninstall || !wrote {
		return err
	}
	return warm.OfferWarm(i.cmd, conf.Flags{Config: i.config, EnvFile: i.envFile}, i.warm)
}

// choose returns the hosts that are meant.
func (i *installer) choose(names []string) (chosen []hosts.Host, err error) {
	switch {
	case i.all && len(names) > 0:
		return nil, hint.With(errors.New("--all and the name of a host exclude each other"), "leave out one of them")
	case !i.all && len(names) == 0:
		return nil, hint.With(errors.New("name one host"), "use %s", strings.Join(hosts.Installable(), ", "))
	case i.path != "" && (i.all || len(names) > 1):
		return nil, hint.With(errors.New("--file goes with one host"), "leave it out, or name one host")
	case i.all:
		names = hosts.Installable()
	}
	for _, name := range names {
		h, err := hosts.Among(name, hosts.Installable())
		if err != nil {
			return nil, err
		}
		if i.all && !i.isHere(h) || slices.ContainsFunc(chosen, func(other hosts.Host) bool { return other.Name == h.Name }) {
			continue
		}
		chosen = append(chosen, h)
	}
	if len(chosen) == 0 {
		return nil, hint.With(errors.New("no host has a config here"), "name those that will: %s", strings.Join(hosts.Installable(), ", "))
	}
	return chosen, nil
}

// isHere reports whether a host has a file to edit.
func (i *installer) isHere(h hosts.Host) bool {
	path, err := (&installer{host: h, project: i.project}).hostFile()
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}

// edit edits the file of the host, and reports whether it was written.
func (i *installer) edit() (wrote bool, err error) {
	path, err := i.hostFile()
	if err != nil {
		return false, err
	}
	if i.file, err = editfile.Open(path); err != nil {
		return false, err
	}
	i.file.NewMode = 0o600 // hosts keep secrets in these files
	made := installed{Host: i.host.Name, File: i.file.Path, Name: i.name, Created: !i.file.Exists()}
	if i.file.KeepIn, err = made.dir(); err != nil {
		return false, err
	}
	edit := i.install
	if i.uninstall {
		edit = i.restore
	}
	text, err := edit()
	if err != nil {
		return false, err
	}
	if bytes.Equal(text, i.file.Old) || !i.file.Exists() && i.uninstall {
		i.out.Printf("Nothing to change in %s\n", i.file.Name())
		return false, nil
	}
	editfile.ShowDiff(i.out, i.file.Path, i.file.Old, text, i.host.Mask)
	if !i.yes && !cli.Confirmed(i.cmd, "Write this to "+i.file.Name()+"?") {
		i.errOut.Printf("Nothing was written; --yes writes it\n")
		return false, nil
	}
	if err := i.file.Write(text); err != nil {
		return false, err
	}
	if !i.uninstall {
		if err := made.write(i.file.KeepIn); err != nil {
			i.errOut.Printf("dynmcp uninstall may not know of it: %v\n", err)
		}
	}
	i.report()
	return true, nil
}

// hostFile returns the file of the host that is edited.
func (i *installer) hostFile() (string, error) {
	switch {
	case i.path != "" && i.project:
		return "", hint.With(errors.New("--file and --project exclude each other"), "leave out one of them")
	case i.path != "":
		return i.path, nil
	case i.project && i.host.Project == "":
		return "", hint.With(fmt.Errorf("%s has no config in projects", i.host.Title), "leave out --project")
	case i.project:
		return filepath.FromSlash(i.host.Project), nil
	}
	if files, err := i.host.UserFiles(); err != nil || len(files) == 0 {
		return "", cmp.Or(err, hint.With(fmt.Errorf("%s has no config that is known on this system", i.host.Title), "name its file with --file"))
	}
	return i.host.UserFile()
}

func (i *installer) report() {
	i.out.Printf("Wrote %s\n", i.file.Name())
	if i.path == "" && !i.project {
		for _, other := range i.host.OtherVersions(i.file.Path) {
			i.errOut.Printf("Other versions of %s read another file, which dynmcp is put into by:\n  dynmcp install %s --file %s\n", i.host.Title, i.host.Name, shellescape.Quote(other))
		}
	}
	if i.file.Exists() {
		i.out.Printf("The old file is %s\n", i.file.Backup())
	}
	i.out.Printf("Restart %s for it to take effect\n", i.host.Title)
}

// install returns the text of the host's file with dynmcp in it.
func (i *installer) install() ([]byte, error) {
	command, args, err := ownCommand()
	if err != nil {
		return nil, err
	}
	files, err := (&conf.Flags{Config: i.config}).Files()
	if err != nil {
		return nil, err
	}
	config, err := filepath.Abs(files[0])
	if err != nil {
		return nil, err
	}
	if err := i.check(config); err != nil {
		return nil, err
	}
	if i.share {
		args = append(args, "connect")
	}
	args = append(args, "-c", config)
	if i.direct {
		args = append(args, "--expose", schema.ExposeDirect)
	}
	env, err := i.variablesFile(files)
	if err != nil {
		return nil, err
	}
	if env != "" {
		args = append(args, "-e", env)
	}
	text := i.file.Old
	if i.takeOver {
		if text, err = i.takeServers(config); err != nil {
			return nil, err
		}
	}
	return i.host.Set(i.file.Path, text, i.name, command, args)
}

// check returns an error if the host cannot run dynmcp with this config.
func (i *installer) check(config string) error {
	switch _, err := os.Stat(config); {
	case err != nil:
		return hint.With(cli.MessageError("Config file not found: "+config), "create it with: dynmcp init --path %s", i.config)
	case hosts.SameFile(config, i.file.Path):
		return hint.With(fmt.Errorf("%s is the file that dynmcp reads its servers from", i.file.Path), "move them into a file of their own: dynmcp import %s --write -c mcp.json", i.host.Name)
	case i.direct && i.share:
		return hint.With(errors.New("--direct and --share exclude each other"), `hosts that share a run have its config: "expose": ["auto"] in it shows every tool to hosts that search tools by themselves`)
	}
	return nil
}

// ownCommand returns a command that will also start this dynmcp later, and its first arguments.
func ownCommand() (string, []string, error) {
	command, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	switch path := filepath.ToSlash(command); {
	case strings.Contains(path, "/go-build"):
		return "", nil, hint.With(errors.New("this dynmcp was built by go run, which removes it when it ends"), "go install ./cmd/dynmcp, then run it from there")
	case strings.Contains(path, "/_npx/"): // npm's cache: the path depends on the version
		npx, err := exec.LookPath("npx")
		if err != nil {
			return "", nil, fmt.Errorf("this dynmcp was started by npx: %w", err)
		}
		return npx, []string{"-y", cli.Package + "@" + cli.Version}, nil
	}
	return command, nil, nil
}

// takeServers returns the host's text without the servers that are also in the config.
func (i *installer) takeServers(config string) ([]byte, error) {
	servers, err := conf.Written(i.cmd.Context(), config)
	if err != nil {
		return nil, err
	}
	text, taken, left, err := i.host.TakeOver(i.cmd.Context(), i.file.Path, i.file.Old, i.name, servers)
	if err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		i.errOut.Printf("Taken over by %s: %s\n", config, strings.Join(taken, ", "))
	}
	if len(left) > 0 {
		i.errOut.Printf("Not in %s as %s has them, and left: %s\nTo have them there: dynmcp import %s --write -c %s\n",
			config, i.host.Title, strings.Join(left, ", "), i.host.Name, config)
	}
	return text, nil
}

// restore returns the host's text as it was before dynmcp was added.
func (i *installer) restore() ([]byte, error) {
	if !i.file.Exists() {
		return nil, nil
	}
	had := map[string]bool{}
	if servers, _, err := i.host.Read(i.cmd.Context(), i.file.Path); err == nil {
		for _, s := range servers {
			if at := slices.Index(s.Args, "-c"); s.Key == i.name && at >= 0 && at+1 < len(s.Args) {
				written, _ := conf.Written(i.cmd.Context(), s.Args[at+1]) // empty, if the config is gone
				for _, w := range written {
					had[w.Name] = true
				}
			}
		}
	}
	text, restored, err := i.host.Restore(i.cmd.Context(), i.file.Path, i.file.Old, i.name, i.file.Backups(), func(name string) bool { return had[name] })
	if len(restored) > 0 {
		i.errOut.Printf("Given back to %s: %s\n", i.host.Title, strings.Join(restored, ", "))
	}
	return text, err
}

// variablesFile returns the file that the host's dynmcp must read variables from, or "" if
// the .env beside the config is enough. It warns about variables that the host would lack.
func (i *installer) variablesFile(configs []string) (path string, err error) {
	if i.envFile != "" {
		if _, err := os.Stat(i.envFile); err != nil {
			return "", err
		}
		return filepath.Abs(i.envFile)
	}
	cfg, err := (&conf.Flags{Config: configs[0], AsWritten: true}).Load(i.cmd.Context())
	if err != nil {
		i.errOut.Printf("%v\ndynmcp will not start with this config until that is mended\n", err)
		return "", nil
	}
	near, err := filepath.Abs(configs[0])
	if err != nil {
		return "", err
	}
	envFile := schema.EnvFileBeside(near)
	missing, err := hosts.MissingUnder(i.cmd.Context(), cfg, configs, "")
	if err != nil {
		return "", err
	}
	if here := hosts.VariablesOf(missing.Directory); len(here) > 0 {
		if _, err := os.Stat(envFile); err == nil {
			i.errOut.Printf("The host starts dynmcp in another directory: %s only in the .env of this one; move that to %s\n", hosts.Are(here), envFile)
		} else if path, err = filepath.Abs(".env"); err != nil {
			return "", err
		}
	}
	if shell := hosts.VariablesOf(missing.Environment); len(shell) > 0 {
		i.errOut.Printf("A host started from the desktop has not the environment of this shell, where %s; write that to %s\n", hosts.Are(shell), cmp.Or(path, envFile))
	}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			i.errOut.Printf("%s is off: %s; %s\n", s.Name, s.Off.Why(), s.Off.Hint)
		}
	}
	return path, nil
}
