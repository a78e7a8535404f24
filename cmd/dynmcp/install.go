package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dynmcp/schema"
)

// installFlags are what install is told.
type installFlags struct {
	config    string
	name      string
	file      string
	project   bool
	uninstall bool
	yes       bool
}

func installCommand() *cobra.Command {
	var flags installFlags
	cmd := &cobra.Command{
		Use:   "install HOST",
		Short: "Put dynmcp into the config of a host",
		Long: `Put dynmcp into the config of a host: ` + strings.Join(hostNames(), ", ") + `.
It shows what it would change and asks; --yes writes without asking, and where
nobody can be asked nothing is written without it. All else in the file stays as
it is, and its old text is kept with .bak at the end of its name. Values that may
be secrets are shown as ***.`,
		Example: `  dynmcp install claude-code -c mcp.json
  dynmcp install cursor --project --yes
  dynmcp install codex --uninstall`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return hinted(errors.New("name one host"), "use %s", strings.Join(hostNames(), ", "))
			}
			return nil
		},
		ValidArgs: hostNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := hostNamed(args[0])
			if err != nil {
				return err
			}
			return runInstall(cmd, h, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` that the host's dynmcp reads (default: the one in the working directory, or the user's)")
	f.StringVar(&flags.name, "name", "dynmcp", "the `name` that dynmcp has in the host")
	f.StringVar(&flags.file, "file", "", "the host's `file`, if it is not where it usually is")
	f.BoolVar(&flags.project, "project", false, "write the host's file of this project, not the user's")
	f.BoolVar(&flags.uninstall, "uninstall", false, "take dynmcp out again")
	f.BoolVarP(&flags.yes, "yes", "y", false, "write without asking")
	return cmd
}

func runInstall(cmd *cobra.Command, h host, flags installFlags) error {
	file, err := hostFile(h, flags)
	if err != nil {
		return err
	}
	text, err := h.edit(file, flags)
	if err != nil {
		return err
	}
	out := stdout(cmd)
	if bytes.Equal(text, file.old) || !file.exists() && flags.uninstall {
		out.printf("Nothing to change in %s\n", file.name())
		return nil
	}
	showDiff(out, file.path, file.old, text, h.toml())
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
	if file.exists() {
		out.printf("The old file is %s\n", file.backup())
	}
	out.printf("Restart %s for it to take effect\n", h.title)
	return nil
}

func hostFile(h host, flags installFlags) (*editedFile, error) {
	if flags.file != "" {
		return openEdited(flags.file)
	}
	files, err := h.files()
	if err != nil {
		return nil, err
	}
	if !flags.project {
		return openEdited(files[len(files)-1])
	}
	if h.project == "" {
		return nil, hinted(fmt.Errorf("%s has no config in projects", h.title), "leave out --project")
	}
	return openEdited(files[0])
}

// edit is the host's file with dynmcp in it, or without.
func (h host) edit(file *editedFile, flags installFlags) ([]byte, error) {
	var command, config string
	var err error
	if !flags.uninstall {
		if command, err = ownPath(); err != nil {
			return nil, err
		}
		if config, err = installedConfig(flags.config); err != nil {
			return nil, err
		}
		if sameFile(config, file.path) {
			return nil, hinted(fmt.Errorf("%s is the file that dynmcp reads its servers from", file.path), "move them into a file of their own: dynmcp import %s --write -c mcp.json", h.name)
		}
	}
	if h.toml() {
		return h.editTOML(file, flags, command, config)
	}
	path := []string{h.key, flags.name}
	if flags.uninstall {
		if len(bytes.TrimSpace(file.old)) == 0 {
			return file.old, nil
		}
		return schema.RemoveJSON(file.path, file.old, path)
	}
	entry := hostEntry{Command: command, Args: []string{"-c", config}}
	if h.typed {
		entry.Type = "stdio"
	}
	value, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	return h.setJSON(file, path, value)
}

// hostEntry is dynmcp as hosts have servers.
type hostEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// setJSON leaves an entry alone that says the same in another layout.
func (h host) setJSON(file *editedFile, path []string, value []byte) ([]byte, error) {
	if has, err := schema.GetJSON(file.path, file.old, path); err == nil && bytes.Equal(has, value) {
		return file.old, nil
	}
	return schema.SetJSON(file.path, file.old, path, value)
}

func (h host) editTOML(file *editedFile, flags installFlags, command, config string) ([]byte, error) {
	if !validName.MatchString(flags.name) {
		return nil, hinted(fmt.Errorf("%q is no name for a table", flags.name), "use lower-case letters, digits and hyphens")
	}
	var body []string
	if !flags.uninstall {
		body = []string{"command = " + tomlString(command), "args = " + tomlStrings([]string{"-c", config})}
	}
	text, err := setTOML(file.old, []string{h.key, flags.name}, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.path, err)
	}
	return text, nil
}

// ownPath is the program that hosts are to start. What go run made is gone when
// it ends.
func ownPath() (string, error) {
	path, err := os.Executable()
	if err == nil && strings.Contains(filepath.ToSlash(path), "/go-build") {
		err = hinted(errors.New("this dynmcp was made by go run and will be gone"), "go install ./cmd/dynmcp, then run it from there")
	}
	return path, err
}

// installedConfig is the absolute path of the config that the host's dynmcp reads.
func installedConfig(named string) (string, error) {
	files, err := (&configFlags{config: named}).files()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(files[0])
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", hinted(sentence("Config file not found: "+path), "make one with: dynmcp init --path %s", named)
	}
	return path, nil
}

// showDiff shows what changes in a file, without its secrets.
func showDiff(out *screen, name string, old, text []byte, isTOML bool) {
	mask := func(data []byte) []byte {
		switch {
		case len(data) == 0:
			return data
		case isTOML:
			return maskTOML(data)
		}
		return schema.Mask(name, data)
	}
	for line := range bytes.Lines(diff.Diff(name, mask(old), name, mask(text))) {
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

// confirmed asks on a terminal. Where there is none, the answer is no.
func confirmed(cmd *cobra.Command, question string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !stderr(cmd).terminal {
		return false
	}
	stderr(cmd).printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
