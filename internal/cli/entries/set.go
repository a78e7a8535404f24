package entries

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
)

// A change holds the flags of set.
type change struct {
	from                       conf.Flags
	description                string
	describes, enable, disable bool
	dryRun                     bool
}

// Set changes a server of a config.
var Set = cli.Verb{
	Use:   "set [flags] NAME",
	Group: cli.SetUp,
	Short: "Enable, disable or describe a server of the config file",
	Long: `Change a server in the config file that has it. The change is shown as a diff.
Comments, layout and all other entries of the file stay as they are, and the old
file is kept with the suffix .bak. Runs of dynmcp that serve the config follow it.`,
	Example: `  dynmcp set git --description "Read and search git history."
  dynmcp set git --disabled --dry-run`,
	Args: cli.One("no server given", "NAME; dynmcp ls lists them"),
	New: func(cmd *cobra.Command) cli.Run {
		c := change{from: conf.Flags{AsWritten: true}}
		c.from.Add(cmd)
		cmd.Flags().StringVar(&c.description, "description", "", "what the server is good for, `text` for the model; empty takes it out")
		cmd.Flags().BoolVar(&c.enable, "enabled", false, "let the server be started")
		cmd.Flags().BoolVar(&c.disable, "disabled", false, "leave the server out of runs")
		cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the diff and write nothing")
		cmd.ValidArgsFunction = conf.CompleteServers(&c.from, "")
		return func(cmd *cobra.Command, args []string) error {
			c.describes = cmd.Flags().Changed("description")
			switch {
			case c.enable && c.disable:
				return hint.With(errors.New("--enabled and --disabled exclude each other"), "leave out one of them")
			case !c.enable && !c.disable && !c.describes:
				return hint.With(errors.New("nothing to change was given"), "--enabled or --disabled, and --description TEXT")
			}
			path, err := c.fileOf(cmd, args[0])
			if err != nil {
				return err
			}
			return c.write(cli.Stdout(cmd), path, args[0])
		}
	},
}

// fileOf returns the config file with the entry of a server.
func (c *change) fileOf(cmd *cobra.Command, name string) (string, error) {
	cfg, err := c.from.Load(cmd.Context())
	if err != nil {
		return "", err
	}
	if _, err := conf.ServerNamed(cfg, name); err != nil {
		return "", err
	}
	return cfg.Origin(name).File, nil
}

func (c *change) write(out *terminal.Writer, path, name string) error {
	file, unlock, err := editfile.LockConfig(path)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := c.edit(file.Path, file.Old, name)
	if err != nil {
		return err
	}
	if bytes.Equal(text, file.Old) {
		out.Printf("%s says so already\n", file.Name())
		return out.Err
	}
	editfile.ShowDiff(out, file.Path, file.Old, text, mask.File)
	if c.dryRun {
		return out.Err
	}
	if err := file.Replace(text); err != nil {
		return fmt.Errorf("change %q: %w", name, err)
	}
	out.Printf("Changed %q in %s\n", name, file.Name())
	return out.Err
}

// edit returns the text of a config file with the changed entry of a server.
func (c *change) edit(path string, text []byte, name string) (_ []byte, err error) {
	if c.describes {
		text, err = schema.SetKey(path, text, name, "description", strings.TrimSpace(c.description))
	}
	if err != nil || !c.enable && !c.disable {
		return text, err
	}
	if text, err = schema.SetKey(path, text, name, "enabled", false); err != nil { // a key of some hosts
		return nil, err
	}
	return schema.SetKey(path, text, name, "disabled", c.disable)
}
