package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/sharing"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// installFlags are the flags of install.
type installFlags struct {
	config    string
	envFile   string
	name      string
	file      string
	project   bool
	takeOver  bool
	share     bool
	direct    bool
	uninstall bool
	warm      bool
	yes       bool
}

func installCommand() *cobra.Command {
	var flags installFlags
	cmd := &cobra.Command{
		Use:   "install HOST",
		Short: "Put dynmcp into the config of a host",
		Long: `Put dynmcp into the config of a host:
` + nameList(hosts.Installable()) + `.

It shows what it would change and asks. --yes writes without asking; without a
terminal to ask on, nothing is written unless --yes is given. Everything else in
the file stays as it is, and the old file is kept with the suffix .bak, or .bak.1
and so on: no backup is overwritten. Values that may be secrets are shown as ***.

--share has the host share one run of dynmcp, and one process of each server, with
the other hosts that are installed so: it starts dynmcp connect.

--direct has the host see every tool as itself, server__tool, for hosts with a tool
search of their own. Servers are listed as they were when they last ran, and none
is started before a call; dynmcp warm lists those that never ran.

--take-over also takes out of the host what dynmcp's config has, as import put it
there: otherwise the model has every tool twice. --uninstall gives the old file
back, to the byte if nothing else has changed it since.`,
		Example: `  dynmcp install claude-code -c mcp.json
  dynmcp install cursor -c mcp.json --take-over
  dynmcp install cursor --project --yes
  dynmcp install cursor --share -c mcp.json
  dynmcp install claude-code --direct -c mcp.json
  dynmcp install codex --uninstall`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return hinted(errors.New("name one host"), "use %s", strings.Join(hosts.Installable(), ", "))
			}
			return nil
		},
		ValidArgs: hosts.Installable(),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := hostNamed(args[0], hosts.Installable())
			if err != nil {
				return err
			}
			return runInstall(cmd, h, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` that the host's dynmcp reads (default: the one in the working directory, or the user's)")
	f.StringVarP(&flags.envFile, "env", "e", "", "the `file` that it reads variables from instead of the .env beside the config")
	f.StringVar(&flags.name, "name", "dynmcp", "the `name` that dynmcp has in the host")
	f.StringVar(&flags.file, "file", "", "the host's `file`, if it is not where it usually is")
	f.BoolVar(&flags.project, "project", false, "write the host's file of this project, not the user's")
	f.BoolVar(&flags.takeOver, "take-over", false, "take the servers out of the host that dynmcp's config has")
	f.BoolVar(&flags.share, "share", false, "share one run of dynmcp with the other hosts that are installed so (dynmcp connect)")
	f.BoolVar(&flags.direct, "direct", false, "show the host every tool as itself (--expose direct)")
	f.BoolVar(&flags.uninstall, "uninstall", false, "remove dynmcp from the host, and give it back what was taken over")
	addWarmFlag(cmd, &flags.warm)
	f.BoolVarP(&flags.yes, "yes", "y", false, "write without asking")
	return cmd
}

// nameList lists names of hosts in two lines.
func nameList(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// hostNamed returns the host that a user named, one of those.
func hostNamed(name string, among []string) (hosts.Host, error) {
	h, _ := hosts.Named(name)
	if !slices.Contains(among, name) {
		return h, hinted(fmt.Errorf("unknown host %q", name), "use %s", strings.Join(among, ", "))
	}
	return h, nil
}

func runInstall(cmd *cobra.Command, h hosts.Host, flags installFlags) error {
	path := flags.file
	var err error
	switch {
	case path != "":
	case flags.project && h.Project == "":
		return hinted(fmt.Errorf("%s has no config in projects", h.Title), "leave out --project")
	case flags.project:
		path = filepath.FromSlash(h.Project)
	default:
		if path, err = h.UserFile(); err != nil {
			return err
		}
	}
	file, err := openEdited(path)
	if err != nil {
		return err
	}
	file.newMode, file.keepAll = 0o600, true // hosts keep secrets in these files
	text, err := editHost(stderr(cmd), h, file, flags)
	if err != nil {
		return err
	}
	out := stdout(cmd)
	if bytes.Equal(text, file.old) || !file.exists() && flags.uninstall {
		out.printf("Nothing to change in %s\n", file.name())
		return nil
	}
	showDiff(out, file.path, file.old, text, h.Mask)
	if !flags.yes && !confirmed(cmd, "Write this to "+file.name()+"?") {
		stderr(cmd).printf("Nothing was written; --yes writes it\n")
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file.path), 0o777); err != nil {
		return err
	}
	if err := file.write(text); err != nil {
		return err
	}
	out.printf("Wrote %s\n", file.name())
	if flags.file == "" && !flags.project {
		for _, other := range h.OtherVersions(file.path) {
			stderr(cmd).printf("Other versions of %s read another file, which dynmcp is put into by:\n  dynmcp install %s --file %s\n", h.Title, h.Name, shellescape.Quote(other))
		}
	}
	if file.exists() {
		out.printf("The old file is %s\n", file.backup())
	}
	out.printf("Restart %s for it to take effect\n", h.Title)
	if flags.uninstall {
		return nil
	}
	return offerWarm(cmd, configFlags{config: flags.config, envFile: flags.envFile}, flags.warm)
}

// editHost returns the text of the host's file with dynmcp in it, or without.
func editHost(errOut *terminal, h hosts.Host, file *editedFile, flags installFlags) ([]byte, error) {
	if flags.uninstall {
		return giveBack(errOut, h, file, flags)
	}
	command, args, err := ownCommand()
	if err != nil {
		return nil, err
	}
	files, err := (&configFlags{config: flags.config}).files()
	if err != nil {
		return nil, err
	}
	config, err := filepath.Abs(files[0])
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(config); err != nil {
		return nil, hinted(messageError("Config file not found: "+config), "create it with: dynmcp init --path %s", flags.config)
	}
	if hosts.SameFile(config, file.path) {
		return nil, hinted(fmt.Errorf("%s is the file that dynmcp reads its servers from", file.path), "move them into a file of their own: dynmcp import %s --write -c mcp.json", h.Name)
	}
	if flags.direct && flags.share {
		return nil, hinted(errors.New("--direct and --share exclude each other"), `hosts that share a run have its config: "expose": ["auto"] in it shows every tool to hosts that search tools by themselves`)
	}
	if flags.share {
		if sharing.Unsupported != nil {
			return nil, sharing.Unsupported
		}
		args = append(args, "connect")
	}
	args = append(args, "-c", config)
	if flags.direct {
		args = append(args, "--expose", schema.ExposeDirect)
	}
	env, err := envForHost(errOut, files, flags.envFile)
	if err != nil {
		return nil, err
	}
	if env != "" {
		args = append(args, "-e", env)
	}
	text := file.old
	if flags.takeOver {
		if text, err = takeOver(errOut, h, file, flags.name, config); err != nil {
			return nil, err
		}
	}
	return h.Set(file.path, text, flags.name, command, args)
}

// ownCommand returns the command that starts this dynmcp later as well, and the
// arguments that must come first.
func ownCommand() (string, []string, error) {
	command, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	switch path := filepath.ToSlash(command); {
	case strings.Contains(path, "/go-build"):
		return "", nil, hinted(errors.New("this dynmcp was built by go run, which removes it when it ends"), "go install ./cmd/dynmcp, then run it from there")
	case strings.Contains(path, "/_npx/"): // npm's cache: another version is put elsewhere
		npx, err := exec.LookPath("npx")
		if err != nil {
			return "", nil, fmt.Errorf("this dynmcp was started by npx: %w", err)
		}
		return npx, []string{"-y", "dynmcp@" + version}, nil
	}
	return command, nil, nil
}

// takeOver returns the host's text without the servers that the config has.
func takeOver(errOut *terminal, h hosts.Host, file *editedFile, name, config string) ([]byte, error) {
	servers, err := writtenServers(config)
	if err != nil {
		return nil, err
	}
	text, taken, left, err := h.TakeOver(file.path, file.old, name, servers)
	if err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		errOut.printf("Taken over by %s: %s\n", config, strings.Join(taken, ", "))
	}
	if len(left) > 0 {
		errOut.printf("Not in %s as %s has them, and left: %s\nTo have them there: dynmcp import %s --write -c %s\n",
			config, h.Title, strings.Join(left, ", "), h.Name, config)
	}
	return text, nil
}

// writtenServers returns the servers of a config as they are written, without a value
// for any variable.
func writtenServers(config string) ([]schema.Server, error) {
	data, err := regular.Read(context.Background(), config, regular.Large)
	if err != nil {
		return nil, err
	}
	return schema.Written(config, data)
}

// giveBack returns the host's text as it was before dynmcp was put into it.
func giveBack(errOut *terminal, h hosts.Host, file *editedFile, flags installFlags) ([]byte, error) {
	if !file.exists() {
		return nil, nil
	}
	had := map[string]bool{}
	if servers, err := h.Read(context.Background(), file.path); err == nil {
		for _, s := range servers {
			if i := slices.Index(s.Args, "-c"); s.Key == flags.name && i >= 0 && i+1 < len(s.Args) {
				written, _ := writtenServers(s.Args[i+1]) // none, if the config is gone
				for _, w := range written {
					had[w.Name] = true
				}
			}
		}
	}
	text, given, err := h.GiveBack(file.path, file.old, flags.name, file.backups(), func(name string) bool { return had[name] })
	if len(given) > 0 {
		errOut.printf("Given back to %s: %s\n", h.Title, strings.Join(given, ", "))
	}
	return text, err
}

// envForHost returns the file that a host's dynmcp is to read variables from, "" if
// it needs none beyond the .env beside the config. It says what the host would lack.
func envForHost(errOut *terminal, configs []string, named string) (path string, err error) {
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", err
		}
		return filepath.Abs(named)
	}
	cfg, err := (&configFlags{config: configs[0]}).load(context.Background())
	if err != nil {
		errOut.printf("%v\ndynmcp will not start with this config until that is mended\n", err)
		return "", nil
	}
	near, err := filepath.Abs(configs[0])
	if err != nil {
		return "", err
	}
	beside := schema.EnvFileBeside(near)
	missing, err := missingUnderHost(context.Background(), cfg, configs, "")
	if err != nil {
		return "", err
	}
	if here := namesOf(missing.directory); len(here) > 0 {
		if _, err := os.Stat(beside); err == nil {
			errOut.printf("The host starts dynmcp in another directory: %s only in the .env of this one; move that to %s\n", are(here), beside)
		} else if path, err = filepath.Abs(".env"); err != nil {
			return "", err
		}
	}
	if shell := namesOf(missing.environment); len(shell) > 0 {
		errOut.printf("A host started from the desktop has not the environment of this shell, where %s; write that to %s\n", are(shell), cmp.Or(path, beside))
	}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			errOut.printf("%s is off: %s; %s\n", s.Name, s.Off.Why(), s.Off.Hint)
		}
	}
	return path, nil
}

// showDiff shows what changes in a file, without the secrets that mask hides.
func showDiff(out *terminal, name string, old, text []byte, mask func(name string, text []byte) []byte) {
	if len(old) > 0 {
		old = mask(name, old)
	}
	if len(text) > 0 {
		text = mask(name, text)
	}
	for line := range bytes.Lines(diff.Diff(name, old, name, text)) {
		switch {
		case bytes.HasPrefix(line, []byte("diff ")):
		case line[0] == '+':
			out.paint(green, string(line))
		case line[0] == '-':
			out.paint(red, string(line))
		default:
			out.printf("%s", line)
		}
	}
}

// confirmed asks on a terminal. Without one the answer is no.
func confirmed(cmd *cobra.Command, question string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !stderr(cmd).interactive {
		return false
	}
	stderr(cmd).printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
