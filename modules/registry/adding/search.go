// Package adding has the verbs search and outdated, and the part of add that makes entries
// for servers of a registry.
package adding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/modules/registry/api"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Search searches registries.
var Search = cli.Verb{
	Use:   "search WORDS…",
	Group: cli.SetUp,
	Short: "Search server registries",
	Long: `Search server registries that have all words in their name or description, or else
the most of them. The official registry compares words with names alone. For each server
the result says how it runs and what it needs. Deleted servers are left out. The
registries are those of "registries" in your own config, or the official one. If a
registry cannot be reached, its last answer is shown, with its age. The exit status is 1
if nothing was found.`,
	Example: `  dynmcp search weather
  dynmcp search issue tracker --registry https://registry.example.com --json`,
	Args: func(_ *cobra.Command, args []string) error {
		switch n := len(strings.Fields(strings.Join(args, " "))); {
		case n == 0:
			return hint.With(errors.New("no words given"), "dynmcp search weather")
		case n > api.MaxWords:
			return hint.With(fmt.Errorf("there are %d words", n), "at most %d are searched for", api.MaxWords)
		}
		return nil
	},
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var address string
		var limit int
		var asJSON bool
		AddRegistryFlag(cmd, &address)
		cmd.Flags().IntVarP(&limit, "limit", "n", 20, "show at most this `number` of servers; 0 is all")
		cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return search(ctx, cli.Stdout(cmd), cli.Stderr(cmd), address, args, limit, asJSON)
		})
	},
}

// AddRegistryFlag adds --registry to a command.
func AddRegistryFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "registry", "", "ask the registry at this `address` alone")
}

// clients returns clients of the registries: the one at address, or those of the user's config,
// or the official one.
func clients(address string) ([]*api.Client, error) {
	addresses := []string{address}
	if path := conf.FindUser(); address == "" && path != "" {
		text, err := regular.Read(context.Background(), path, regular.Large)
		if err != nil {
			return nil, err
		}
		if addresses, err = listed(path, text); err != nil {
			return nil, err
		}
	}
	addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == "" })
	if len(addresses) == 0 {
		addresses = []string{api.Official}
	}
	dir, err := conf.StateDir()
	if err == nil {
		dir = filepath.Join(dir, "registry")
	}
	var all []*api.Client
	for _, a := range addresses {
		c := &api.Client{Address: a, Dir: dir}
		if err := c.Open(); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func listed(path string, text []byte) (all []string, err error) {
	root, err := (&syntax.Source{Name: path, Data: text}).Parse()
	if err != nil || !root.Has("registries") {
		return nil, err
	}
	for _, item := range root.Get("registries").Items {
		all = append(all, item.Scalar)
	}
	return all, nil
}

// sayAge prints a warning if the client answered from its cache.
func sayAge(errOut *terminal.Writer, c *api.Client) {
	if c.Why != nil {
		errOut.Say("%s cannot be asked (%v); what it said %s ago is shown", c.Address, c.Why, age(c.Stale))
	}
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 2*time.Hour:
		return display.Plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return display.Plural(int(d.Hours()), "hour")
	}
	return display.Plural(int(d.Hours()/24), "day")
}

// installed reports whether a program is on the PATH.
func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// A foundServer is a server in the output of search.
type foundServer struct {
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description"`
	Status      string     `json:"status"`
	Message     string     `json:"message,omitempty"`
	Registry    string     `json:"registry"`
	Ways        []foundWay `json:"ways"`
}

// A foundWay is a way to run a foundServer.
type foundWay struct {
	Via     string `json:"via"`
	What    string `json:"what"`
	Missing string `json:"missing,omitempty"`
	Needs   []need `json:"needs,omitempty"`
}

type need struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
	Secret      bool   `json:"secret"`

	Default     string   `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
}

func search(ctx context.Context, out, errOut *terminal.Writer, address string, words []string, limit int, asJSON bool) error {
	all, err := clients(address)
	if err != nil {
		return err
	}
	found, err := searchAll(ctx, errOut, all, words)
	if err != nil {
		return err
	}
	more := 0
	if limit > 0 && len(found) > limit {
		more, found = len(found)-limit, found[:limit]
	}
	var none error
	if len(found) == 0 {
		none = hint.With(fmt.Errorf("no server was found for %q", strings.Join(words, " ")), "try other words, or fewer")
	}
	if asJSON {
		return cmp.Or(terminal.WriteJSON(out, found), none)
	}
	for _, s := range found {
		s.write(out)
	}
	switch {
	case len(found) == 0:
		return none
	case more > 0:
		out.Printf("%d more: --limit 0 shows them\n", more)
	}
	return out.Err
}

// searchAll searches several registries. It fails only if all of them fail; otherwise errors are
// printed to errOut.
func searchAll(ctx context.Context, errOut *terminal.Writer, all []*api.Client, words []string) ([]foundServer, error) {
	found := []foundServer{}
	var errs []error
	for _, c := range all {
		waiting := terminal.ShowProgress(errOut, "asking "+c.Address)
		servers, err := c.Search(ctx, words)
		waiting.End()
		if ctx.Err() != nil {
			return nil, cli.ErrInterrupted
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sayAge(errOut, c)
		for _, s := range servers {
			found = append(found, shown(s))
		}
	}
	if len(errs) == len(all) {
		return nil, hint.With(errors.Join(errs...), "check the network and the address of the registry: no earlier answer to these words is kept")
	}
	for _, err := range errs {
		errOut.Say("%v", err)
	}
	return found, nil
}

func shown(s api.Server) foundServer {
	f := foundServer{s.Name, s.Version, s.Title, s.Description, s.Status, s.Message, s.From, []foundWay{}}
	for _, o := range s.Options(installed) {
		way := foundWay{Via: o.Via, What: o.What, Missing: o.Missing}
		questions, err := o.Questions()
		if err != nil && o.Missing == "" {
			way.Missing = err.Error()
		}
		for _, q := range questions {
			way.Needs = append(way.Needs, need{q.Name, q.Description, q.IsRequired && q.Default == "", q.Secret, q.Default, q.Placeholder, q.Choices})
		}
		f.Ways = append(f.Ways, way)
	}
	return f
}

// write prints a server as text, with control characters escaped even if the output is a pipe.
func (f foundServer) write(out *terminal.Writer) {
	out.Paint(terminal.Bold, f.Name)
	out.Printf(" %s", f.Version)
	if f.Status == api.Deprecated {
		out.Paint(terminal.Yellow, " deprecated")
		if f.Message != "" {
			out.Printf(": %s", f.Message)
		}
	}
	out.Printf("\n")
	if text := cmp.Or(f.Description, f.Title); text != "" {
		out.Printf("%s\n", terminal.Indent(out.Fold(text, 2), "  "))
	}
	for _, way := range f.Ways {
		out.Printf("%s\n", terminal.Indent(out.Fold(way.String(), 4), "  "))
	}
	if len(f.Ways) == 0 {
		out.Printf("  It names no package and no remote.\n")
	}
}

func (w foundWay) String() string {
	text := fmt.Sprintf("%s: %s", w.Via, w.What)
	var needs []string
	for _, n := range w.Needs {
		if n.Required {
			needs = append(needs, n.Name)
		}
	}
	if len(needs) > 0 {
		text += "; needs " + strings.Join(needs, ", ")
	}
	if w.Missing != "" {
		text += "; not here: " + w.Missing
	}
	return text
}
