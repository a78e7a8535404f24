package secret

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/dotenv"
	"github.com/dynmcp/dynmcp/schema/reference"
)

const (
	InKeyring = "keyring"
	InEnv     = "env"
)

// CheckPlace checks the value of --secrets. "" is valid, and leaves the choice to the verb.
func CheckPlace(ctx context.Context, place string) error {
	switch {
	case place == InKeyring && !HasModule(ctx):
		return hint.With(fmt.Errorf("--secrets %s %s", place, reference.Lacking(place)), "--secrets env puts them into the .env beside the config")
	case place == "" || place == InKeyring || place == InEnv:
		return nil
	}
	return hint.With(fmt.Errorf("--secrets: unknown place %q", place), "there are keyring and env")
}

// A Destination is the keyring or the .env beside a config, with the secrets to write to it.
type Destination struct {
	// Values are the secrets to write, by name.
	Values map[string]string

	env     *editfile.File // the .env beside the config, nil if it is not written
	mode    string         // the value of the config's key env
	keyring bool

	set    map[string]string // secrets that the destination has already
	others map[string]string // variables of the environment
	used   map[string]bool   // names that the config refers to
}

var nameInReference = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// Open opens the destination for the secrets of a config: the keyring, or the .env beside it. A
// secret that is there already keeps its name. Names that have another value in the destination or
// the environment, or that the config or one of texts refers to, are not given to new secrets.
func Open(config *editfile.File, inKeyring bool, texts ...string) (d *Destination, err error) {
	d = &Destination{Values: map[string]string{}, keyring: inKeyring, others: map[string]string{}, used: map[string]bool{}}
	if config.Exists() {
		if d.mode, err = schema.EnvMode(config.Path, config.Old); err != nil {
			return nil, err
		}
	}
	for _, text := range append(texts, string(config.Old)) {
		for _, name := range nameInReference().FindAllStringSubmatch(text, -1) {
			d.used[name[1]] = true
		}
	}
	if d.mode == "disable" {
		return nil, hint.With(fmt.Errorf(`%s has "env": "disable", which leaves ${NAME} as it is`, config.Name()), "change that key, or no reference can take the place of a secret")
	}
	if inKeyring {
		d.set, err = kept()
		return d, err
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		d.others[name] = value
	}
	if d.mode != "process" {
		d.env, d.set, err = openEnv(config)
	}
	return d, err
}

// openEnv opens the .env beside a config, and returns its variables.
func openEnv(config *editfile.File) (*editfile.File, map[string]string, error) {
	path := config.Path
	if config.Link != "" {
		path = config.Link // the .env is beside the link
	}
	file, err := editfile.Open(filepath.Join(filepath.Dir(path), ".env"))
	if err != nil {
		return nil, nil, err
	}
	set, err := dotenv.Parse(file.Path, file.Old)
	return file, set, err
}

// Writable returns an error if the config takes variables only from the environment.
func (d *Destination) Writable(config *editfile.File) error {
	if d.keyring || d.env != nil {
		return nil
	}
	return hint.With(fmt.Errorf(`%s takes variables from the environment alone ("env": %q)`, config.Name(), d.mode), "set them there, and refer to them as ${NAME}")
}

// variableKey matches names that have the form of a variable with a prefix.
var variableKey = lazyregexp.New(`^[A-Z][A-Z0-9_]*_[A-Z0-9_]+$`)

var camelCase = lazyregexp.New(`([a-z0-9])([A-Z])`)

// Put adds a secret of a server, and returns the reference that takes its place.
func (d *Destination) Put(server, name, value string) string {
	prefix := reference.VariableName(server)
	base := reference.VariableName(camelCase().ReplaceAllString(name, "${1}_${2}"))
	if base == "" {
		base = "SECRET"
	}
	long := base
	if !strings.HasPrefix(base, prefix+"_") {
		long = prefix + "_" + base
	}
	if !variableKey().MatchString(name) {
		base = long
	}
	i := 1
	for !d.take(candidateName(base, long, i), value) {
		i++
	}
	if name = candidateName(base, long, i); d.keyring {
		return "${keyring:" + name + "}"
	}
	return "${" + name + "}"
}

// take gives the name to a secret, and reports whether it was free or has this value already.
func (d *Destination) take(name, value string) bool {
	if old, set := d.set[name]; set {
		return old == value
	}
	if old, mine := d.Values[name]; mine || d.used[name] {
		return mine && old == value
	}
	if old, set := d.others[name]; set && old != value {
		return false
	}
	d.Values[name] = value
	return true
}

// candidateName returns the i-th name to try for a variable, from 1: the short one, the long one,
// then the long one with numbers.
func candidateName(short, long string, i int) string {
	name := short
	switch {
	case i == 2:
		name = long
	case i > 2:
		name = fmt.Sprintf("%s_%d", long, i-1)
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// Names returns the sorted names of the secrets, separated by commas.
func (d *Destination) Names() string {
	return strings.Join(slices.Sorted(maps.Keys(d.Values)), ", ")
}

// Write stores the secrets in the keyring, or at the end of the .env, which then only its owner can
// read. No backup of the .env is kept, because git might not ignore it.
func (d *Destination) Write() error {
	switch {
	case len(d.Values) == 0 || !d.keyring && d.env == nil:
		return nil
	case d.keyring:
		for _, name := range slices.Sorted(maps.Keys(d.Values)) {
			if err := Set(name, d.Values[name]); err != nil {
				return err
			}
		}
		return nil
	}
	unlock, err := d.env.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	text, err := dotenv.Add(d.env.Path, d.env.Old, d.Values)
	if err != nil {
		return err
	}
	return atomicfile.Replace(d.env.Path, text, 0o600)
}

// Report prints where the secrets are, or what the user must do with them.
func (d *Destination) Report(errOut *terminal.Writer) {
	switch n := len(d.Values); {
	case n == 0:
	case d.keyring:
		errOut.Printf("Put %s into the keyring: %s\n", display.Plural(n, "secret"), d.Names())
	case d.env != nil:
		errOut.Printf("Wrote %s to %s, which only you can read; keep it out of version control\n", display.Plural(n, "variable"), d.env.Name())
	default:
		errOut.Printf("The config takes variables from the environment alone (\"env\": %q): set %s there\n", d.mode, d.Names())
	}
}

// Announce prints where the secrets would be written.
func (d *Destination) Announce(errOut *terminal.Writer) {
	switch n := len(d.Values); {
	case n == 0:
	case d.keyring:
		errOut.Printf("%s would be put into the keyring: %s\n", display.Plural(n, "secret"), d.Names())
	case d.env != nil:
		errOut.Printf("%s would be written to %s\n", display.Plural(n, "variable"), d.env.Name())
	}
}
