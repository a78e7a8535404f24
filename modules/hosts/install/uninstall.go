package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Uninstall removes what dynmcp made on this machine.
var Uninstall = cli.Verb{
	Use:   "uninstall [flags]",
	Group: cli.SetUp,
	Short: "Remove what dynmcp made on this machine",
	Long: `Remove what dynmcp made on this machine: give hosts their files back, to the byte if
nothing else has changed them since, end the runs, remove the backups of hosts' files, the
secrets in the keyring and dynmcp's state directory. It shows all of that and asks once;
without a terminal to ask on, nothing is removed unless --yes is given.

Your configs, their .env and the program itself stay: it says where they are.`,
	Example: `  dynmcp uninstall
  dynmcp uninstall --yes`,
	Args: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && slices.Contains(hosts.Installable(), args[0]) {
			return hint.With(errors.New("uninstall is for all hosts"), "dynmcp install %s --uninstall is for one", args[0])
		}
		return cli.NoArguments(cmd, args)
	},
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		yes := cmd.Flags().BoolP("yes", "y", false, "remove without asking")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			r := removal{cmd: cmd, out: cli.Stdout(cmd)}
			if err := r.find(ctx); err != nil {
				return err
			}
			if r.isEmpty() {
				r.out.Say("dynmcp made nothing here that is left.")
				return r.out.Err
			}
			r.show()
			if !*yes && !cli.Confirmed(cmd, "Remove all of that?") {
				cli.Stderr(cmd).Printf("Nothing was removed; --yes removes it\n")
				return r.out.Err
			}
			return errors.Join(r.do(ctx), r.out.Err)
		})
	},
}

// A removal is what dynmcp made here.
type removal struct {
	cmd *cobra.Command
	out *terminal.Writer

	restored []restored
	running  []runs.Found
	secrets  []string // names in the keyring
	state    string   // the state directory, "" if it is not there
	kept     []string // in it: files of the user
}

// A restored is a file of a host, and its text without dynmcp.
type restored struct {
	file    *editfile.File
	title   string
	text    []byte   // nil if the file is removed
	backups []string // beside it
}

func (r *removal) isEmpty() bool {
	return len(r.restored)+len(r.running)+len(r.secrets) == 0 && r.state == ""
}

func (r *removal) find(ctx context.Context) error {
	for _, at := range everywhere() {
		back, err := r.restore(at)
		if err != nil {
			return fmt.Errorf("%s: %w", at.File, err)
		}
		if back != nil {
			r.restored = append(r.restored, *back)
		}
	}
	r.running = runs.Find(ctx, 0)
	var err error
	if r.secrets, err = secret.Names(); err != nil {
		return err
	}
	r.state, err = conf.StateDir()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(r.state)
	for _, e := range entries {
		if e.Name() == ".env" || slices.Contains(conf.UserNames, e.Name()) { // both directories may be one
			r.kept = append(r.kept, e.Name())
		}
	}
	if len(entries) == len(r.kept) {
		r.state = ""
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// restore returns the file of a host without dynmcp, nil if dynmcp is not in it.
func (r *removal) restore(at installed) (*restored, error) {
	h, err := hosts.Among(at.Host, hosts.Installable())
	if err != nil {
		return nil, err
	}
	file, err := editfile.Open(at.File)
	if err != nil || !file.Exists() {
		return nil, err
	}
	if file.KeepIn, err = at.dir(); err != nil {
		return nil, err
	}
	servers, _, err := h.Read(r.cmd.Context(), file.Path)
	if err != nil || !slices.ContainsFunc(servers, func(s hosts.Server) bool {
		_, own := hosts.DynmcpArgs(s.Command, s.Args)
		return s.Key == at.Name && own
	}) {
		return nil, nil // it is not readable for the host either, or not dynmcp's
	}
	i := installer{cmd: r.cmd, out: r.out, errOut: cli.Stderr(r.cmd), host: h, name: at.Name, file: file}
	text, err := i.restore()
	if err != nil {
		return nil, err
	}
	if at.Created && bytes.Equal(text, emptied(r.cmd.Context(), h, &at)) {
		text = nil
	}
	return &restored{file, h.Title, text, editfile.BackupsBeside(file.Path)}, nil
}

// emptied returns what is left of a file that dynmcp created, without dynmcp.
func emptied(ctx context.Context, h hosts.Host, at *installed) []byte {
	text, err := h.Set(at.File, nil, at.Name, "dynmcp", nil)
	if err == nil {
		text, _, err = h.Restore(ctx, at.File, text, at.Name, nil, nil)
	}
	if err != nil {
		return nil
	}
	return text
}

func (r *removal) show() {
	for _, back := range r.restored {
		if back.text == nil {
			r.out.Printf("remove    %s, which %s did not have\n", back.file.Name(), back.title)
		} else {
			r.out.Printf("restore   %s of %s\n", back.file.Name(), back.title)
		}
		for _, path := range back.backups {
			r.out.Printf("remove    %s\n", path)
		}
	}
	for _, f := range r.running {
		r.out.Printf("end       run %d  %s\n", f.PID, f.Config)
	}
	if len(r.secrets) > 0 {
		r.out.Printf("remove    %s of the keyring: %s\n", display.Plural(len(r.secrets), "secret"), strings.Join(r.secrets, ", "))
	}
	if r.state != "" {
		r.out.Printf("remove    %s: logins, lists of tools, approvals, the record of calls, backups\n", r.state)
	}
	stays := []string{"your configs and what is beside them"}
	if user := conf.FindUser(); user != "" {
		stays = append(stays, user)
	}
	if own, err := os.Executable(); err == nil {
		stays = append(stays, own)
	}
	r.out.Printf("It leaves %s\n", strings.Join(stays, ", "))
}

// do removes it. The state directory, which has the backups, goes last, and stays after an error.
func (r *removal) do(ctx context.Context) error {
	if len(r.secrets) > 0 {
		if err := keyring.Offered(); err != nil {
			return secret.KeyringError(err)
		}
	}
	for _, f := range r.running {
		if err := f.End(ctx); err != nil {
			return cli.Interrupted(err)
		}
	}
	for _, back := range r.restored {
		err := back.file.Write(back.text)
		if err == nil && back.text == nil {
			err = os.Remove(back.file.Path)
		}
		for _, path := range back.backups {
			if err == nil {
				err = os.Remove(path)
			}
		}
		if err != nil {
			return hint.With(err, "what dynmcp keeps is still in %s; mend that and try again", r.state)
		}
	}
	for _, name := range r.secrets {
		if err := keyring.Delete(secret.Service, name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return secret.KeyringError(err)
		}
	}
	if err := logins.ForgetKey(); err != nil {
		return err
	}
	if r.state != "" {
		if err := r.clear(); err != nil {
			return err
		}
	}
	r.out.Say("Removed. Restart your hosts.")
	return nil
}

// clear removes the state directory, or what is in it beside files of the user.
func (r *removal) clear() error {
	entries, err := os.ReadDir(r.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains(r.kept, e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.state, e.Name())))
		}
	}
	if err == nil && len(r.kept) == 0 {
		err = os.Remove(r.state)
	}
	return err
}
