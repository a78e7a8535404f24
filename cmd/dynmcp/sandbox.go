package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func sandboxCommand() *cobra.Command {
	from := configFlags{asWritten: true}
	cmd := &cobra.Command{
		Use:   "sandbox [flags] SERVER",
		Short: "Say what a server may do",
		Long: `Say what a server may do: the files that it may read and change, and what it may
connect to. Nothing is started. A server without "sandbox" in its entry may do what you
may; then it is said what it could do with "sandbox": true.`,
		Example:           "  dynmcp sandbox files",
		Args:              atMost(1),
		ValidArgsFunction: completeServers(&from, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := from.load(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return hinted(errors.New("no server given"), "dynmcp ls lists them")
			}
			at := slices.IndexFunc(cfg.Servers, func(s schema.Server) bool { return s.Name == args[0] })
			if at < 0 {
				return hinted(fmt.Errorf("there is no server %q", args[0]), "dynmcp ls lists them")
			}
			return writeSandbox(stdout(cmd), cfg.Servers[at])
		},
	}
	from.add(cmd)
	return cmd
}

// writeSandbox says what a server may do.
func writeSandbox(out *terminal.Writer, s schema.Server) error {
	if s.Transport != schema.Stdio {
		return fmt.Errorf("%s is at %s: what it does there is not ours to limit", s.Name, endpoint(s))
	}
	if !s.Sandbox.On {
		out.Printf("%s has no sandbox: it may do what you may. With \"sandbox\": true:\n\n", s.Name)
	}
	confined := upstream.Confined(s)
	policy := confined.Policy()
	system := append(sandbox.System(), sandbox.Devices()...)
	own := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			return slices.ContainsFunc(system, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
		})
	}
	out.Heading("It may read, and run programs of:")
	writePaths(out, append([]string{"programs, libraries and settings of the system"}, own(policy.Read)...))
	out.Heading("It may change:")
	writePaths(out, append([]string{"a temporary directory of its own, which goes when it ends"}, own(policy.Write)...))
	out.Heading("It may connect to:")
	switch policy.Network {
	case sandbox.NoNetwork:
		writePaths(out, []string{"nothing"})
	case sandbox.OnlyByProxy:
		writePaths(out, confined.Hosts)
	default:
		writePaths(out, []string{"any address, this machine's too"})
	}
	out.Heading("It has these variables:")
	var names []string
	for _, entry := range confined.Env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	writePaths(out, slices.Compact(names))
	walls, err := sandbox.Build(policy)
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		out.Printf("\nIt is not started here: %s\n", missing)
	} else if err != nil {
		return err
	}
	return errors.Join(out.Err, walls.Close())
}

func writePaths(out *terminal.Writer, all []string) {
	for _, one := range all {
		out.Printf("  %s\n", one)
	}
}
