package adding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/modules/registry/api"
	"github.com/dynmcp/dynmcp/schema"
)

// Outdated lists the servers with newer versions.
var Outdated = cli.Verb{
	Use:    "outdated [flags]",
	Hidden: true,
	Short:  "List servers with newer versions",
	Long: `List the servers of the config whose version is pinned, and of which there is a newer
one: those that dynmcp add made of a registry, and commands with a version of a package of
npm or PyPI, or with a tag of a container's image. The registry is asked, or npm and pip
are, as they are set up here. No server is started. The exit status is 1 if a server could not
be asked for.`,
	Example:  `  dynmcp update --check`,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		from := conf.Flags{AsWritten: true}
		var address string
		var asJSON bool
		from.Add(cmd)
		AddRegistryFlag(cmd, &address)
		cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			cfg, err := from.Load(ctx)
			if err != nil {
				return err
			}
			return WriteNewer(ctx, cmd, address, conf.Enabled(cfg), asJSON)
		})
	},
}

// WriteNewer lists newer versions of servers, as the verb outdated does.
func WriteNewer(ctx context.Context, cmd *cobra.Command, address string, servers []schema.Server, asJSON bool) error {
	out := cli.Stdout(cmd)
	all, silent := Newer(ctx, cli.Stderr(cmd), address, servers)
	if asJSON {
		return cmp.Or(terminal.WriteJSON(out, all), silent)
	}
	if len(all) == 0 {
		WriteNone(out, silent)
	} else {
		writeOutdated(out, all)
	}
	return cmp.Or(out.Err, silent)
}

// An Upgrade is a newer version of a server's package.
type Upgrade struct {
	Server string `json:"server"`
	What   string `json:"what"` // the package, or the name in a registry
	Pinned string `json:"pinned"`
	Newest string `json:"newest"`

	Before   []string `json:"-"` // the arguments of the entry
	Args     []string `json:"-"` // the arguments with the newest version
	Registry string   `json:"-"` // NAME@VERSION in the registry, with the newest version
	Err      error    `json:"-"` // why replacing the version is not enough
}

func writeOutdated(out *terminal.Writer, all []Upgrade) {
	t := terminal.Table{Header: []string{"NAME", "PACKAGE", "PINNED", "NEWEST"}, Shrink: 1}
	for _, u := range all {
		t.Rows = append(t.Rows, []string{u.Server, u.What, u.Pinned, u.Newest})
	}
	t.Write(out)
}

// WriteNone says that there is no upgrade, unless servers could not be asked.
func WriteNone(out *terminal.Writer, silent error) {
	if silent != nil {
		out.Printf("%v; no other server has a newer version.\n", silent)
		return
	}
	out.Printf("No server has a newer version.\n")
}

// Newer returns the upgrades of servers, until ctx ends. Errors are printed to errOut; silent says how
// many servers could not be asked, nil if none.
func Newer(ctx context.Context, errOut *terminal.Writer, address string, servers []schema.Server) (all []Upgrade, silent error) {
	all = []Upgrade{}
	failed := 0
	for _, s := range servers {
		waiting := terminal.ShowProgress(errOut, "asking for "+s.Name)
		u, err := newest(ctx, errOut, address, s)
		waiting.End()
		switch {
		case ctx.Err() != nil:
			return all, nil
		case err != nil:
			errOut.Say("%s: %v", s.Name, err)
			failed++
		case u != nil && api.Compare(u.Newest, u.Pinned) > 0:
			all = append(all, *u)
		}
	}
	if failed > 0 {
		silent = fmt.Errorf("%d of %s could not be asked for", failed, display.Plural(len(servers), "server"))
	}
	return all, silent
}

// newest returns the newest version of a server, or nil if its version is not pinned.
func newest(ctx context.Context, errOut *terminal.Writer, address string, s schema.Server) (*Upgrade, error) {
	if schema.ServerKeys[api.Keys](s).Registry != "" {
		return ofRegistry(ctx, errOut, address, s)
	}
	p := packages.Of(s.Command, s.Args)
	index := slices.IndexFunc(s.Args, func(arg string) bool { return strings.HasSuffix(arg, p.Spec) })
	if p.Spec == "" || index < 0 {
		return nil, nil
	}
	name, version, found, err := released(ctx, p)
	if found == "" || err != nil {
		return nil, err
	}
	args := slices.Clone(s.Args)
	args[index] = strings.TrimSuffix(args[index], version) + found
	return &Upgrade{Server: s.Name, What: p.Kind + ":" + name, Pinned: version, Newest: found, Before: s.Args, Args: args}, nil
}

// released returns a package's name and version, and its newest release. newest is "" if the
// version is not pinned.
func released(ctx context.Context, p packages.Package) (name, version, newest string, err error) {
	if p.Kind == api.OCI {
		version, newest, err = api.NewestTag(ctx, p.Spec)
		return strings.TrimSuffix(p.Spec, ":"+version), version, newest, err
	}
	name, version = p.Cut()
	if p.Kind != api.NPM && p.Kind != api.PyPI || !release().MatchString(version) {
		return "", "", "", nil
	}
	if newest, err = published(ctx, p.Kind, name); !release().MatchString(newest) {
		newest = ""
	}
	return name, version, newest, err
}

// ofRegistry asks the registries for the newest version of an entry that was added from one.
func ofRegistry(ctx context.Context, errOut *terminal.Writer, address string, s schema.Server) (*Upgrade, error) {
	name, version, err := api.CutVersion(schema.ServerKeys[api.Keys](s).Registry)
	if err != nil {
		return nil, err
	}
	latest, err := find(ctx, errOut, address, name, "")
	if err != nil || api.Compare(latest.Version, version) <= 0 {
		return nil, err
	}
	u := &Upgrade{Server: s.Name, What: name, Pinned: version, Newest: latest.Version, Before: s.Args, Registry: name + "@" + latest.Version}
	old, err := find(ctx, terminal.New(io.Discard), address, name, version) // the age was printed already
	if err == nil {
		u.Args, err = old.Upgrade(latest, s.Args)
	}
	u.Err = err
	return u, nil
}

const askTime = time.Minute

// release matches a version that is one release.
var release = lazyregexp.New(`^\d+(\.\d+)+([-+.]?[0-9A-Za-z]+)*$`)

var printed = lazyregexp.New(`^\S+ \(([^()\s]+)\)`)

// published asks the installed npm or pip for the newest release of a package.
func published(ctx context.Context, kind, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	words := []string{"npm", "view", "--json", "--", name, "version"}
	if kind == api.PyPI {
		words = []string{"pip", "index", "versions", "--disable-pip-version-check", "--", name}
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s, which tells the newest version of %s, is not installed", words[0], name)
	case err != nil:
		return "", fmt.Errorf("%s does not say the newest version of %s: %w", words[0], name, err)
	}
	if kind == api.PyPI {
		if m := printed().FindSubmatch(out); m != nil {
			return string(m[1]), nil
		}
		return "", fmt.Errorf("pip does not say the newest version of %s", name)
	}
	var version string
	if err := json.Unmarshal(out, &version); err != nil {
		return "", fmt.Errorf("npm does not say the newest version of %s", name)
	}
	return version, nil
}
