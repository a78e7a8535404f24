package adding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog/describe"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/registry/api"
	"github.com/dynmcp/dynmcp/schema"
)

// Adding holds the flags of add for servers of a registry.
type Adding struct {
	Registry, Via, As string
	Set               []string // answers, NAME=VALUE
	Answers           string   // a file of further answers, "-" for stdin
	Secrets           string
	Yes               bool

	module.Given
}

// New returns the form of add for servers of registries.
func New() module.Adder { return &Adding{} }

// Help returns what the help of add says of registries.
func (a *Adding) Help() (long, example string) {
	return `NAMESPACE/SERVER[@VERSION] is a server of a registry, which dynmcp search finds. add shows
what will run and its version. It asks for what the server needs, unless --set, --answers,
--env or --header give it. Secrets go into the keyring, or into the .env beside the config.
Nothing is written before you agree, or give --yes.`,
		`  dynmcp add io.github.user/weather@1.2.0 --via npm --set UNITS=metric --yes`
}

// Takes reports whether a name is one of registries.
func (a *Adding) Takes(name string) bool { return strings.Contains(name, "/") }

// Flags says what the flags go with.
func (a *Adding) Flags() (goWith, remedy string) {
	return "the name of a server in a registry", "dynmcp search finds names; they look like io.github.user/server"
}

// AddFlags adds the flags to a command.
func (a *Adding) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	AddRegistryFlag(cmd, &a.Registry)
	f.StringVar(&a.Via, "via", "", "how a server of a registry is run: "+strings.Join(api.Ways, ", "))
	f.StringVar(&a.As, "name", "", "the `name` of the entry of a server of a registry")
	cli.AddOld(cmd, "name", "as")
	f.StringArrayVar(&a.Set, "set", nil, "what a server of a registry asks for, `NAME=VALUE`; may be repeated")
	f.StringVar(&a.Answers, "answers", "", "a JSON `file` of what it asks for, an object of names and texts; - is stdin")
	f.StringVar(&a.Secrets, "secrets", "", "where its secrets are kept: keyring, or env for the .env beside the config")
	f.BoolVarP(&a.Yes, "yes", "y", false, "add a server of a registry as it is shown, and ask nothing")
	cli.CompleteValues(cmd, map[string][]string{"via": api.Ways, "secrets": {secret.InKeyring, secret.InEnv}})
}

// Entry makes an entry for the server which of a registry, NAME or NAME@VERSION, and prints what
// it runs. The caller must call keep, which stores the secrets, before it writes the entry.
func (a *Adding) Entry(cmd *cobra.Command, which string, given module.Given) (s schema.Server, keep func() error, err error) {
	if a.Given = given; given.Program || given.URL != "" {
		return s, nil, hint.With(errors.New("a command, --url, --transport, --args and --cwd do not go with a server of a registry"), "the registry says how it is run; --via chooses")
	}
	name, version, err := api.CutVersion(which)
	if err != nil {
		return s, nil, hint.With(err, "dynmcp search WORDS finds names; they look like io.github.user/server")
	}
	a.As = cmp.Or(a.As, schema.ServerName(path.Base(name)))
	file, err := a.check(cmd.Context())
	if err != nil {
		return s, nil, err
	}
	var found *api.Server
	err = cli.Interruptibly(cmd, func(ctx context.Context) error {
		found, err = find(ctx, cli.Stderr(cmd), a.Registry, name, version)
		return err
	})
	if err != nil {
		return s, nil, err
	}
	w := wizard{cmd: cmd, out: cli.Stdout(cmd), errOut: cli.Stderr(cmd)}
	w.ask = !a.Yes && cli.Asks(cmd)
	if found.Status == api.Deprecated {
		w.errOut.Say("%s is deprecated%s", found.Name, strings.TrimSuffix(": "+found.Message, ": "))
	}
	option, err := w.choose(found.Options(installed), a.Via)
	if err != nil {
		return s, nil, fmt.Errorf("%s: %w", found.Name, err)
	}
	err = cli.Interruptibly(cmd, func(ctx context.Context) error { return unpack(ctx, w.errOut, option) })
	if err != nil {
		return s, nil, err
	}
	s, to, err := a.build(&w, file, found, option)
	if err != nil {
		return s, nil, fmt.Errorf("%s: %w", found.Name, err)
	}
	show(w.out, found, option, s)
	switch {
	case !a.Yes && !w.ask:
		return s, nil, hint.With(errors.New("there is no terminal to ask on"), "--yes adds it as shown")
	case w.ask && !cli.Confirmed(cmd, fmt.Sprintf("Add it as %q?", a.As)):
		return s, nil, errors.New("nothing was added")
	case w.ask && s.Transport == schema.Stdio && option.Via != api.OCI && !a.Sandbox:
		if l := module.LauncherOf(cmd.Context()); l != nil && cli.Confirmed(cmd, "Run it in a sandbox? It can then change nothing outside its own directories (dynmcp sandbox shows all).") {
			s = l.Limit(s)
		}
	}
	return s, func() error {
		if to == nil {
			return nil
		}
		if err := to.Write(); err != nil {
			return err
		}
		to.Report(w.errOut)
		return nil
	}, nil
}

// build collects the answers and makes the entry. to is the destination of its secrets, or nil.
func (a *Adding) build(w *wizard, config *editfile.File, found *api.Server, o *api.Option) (s schema.Server, to *secret.Destination, err error) {
	answers, err := a.answers(w, o)
	if err != nil {
		return s, nil, err
	}
	if to, err = a.hide(w.cmd.Context(), config, o, answers); err != nil {
		return s, nil, err
	}
	if s, err = o.Build(a.As, answers); err != nil {
		return s, nil, missing(err)
	}
	return a.complete(w.cmd.Context(), s, found), to, nil
}

// check checks the flags and that the name of the entry is free, before any question is asked.
func (a *Adding) check(ctx context.Context) (*editfile.File, error) {
	switch {
	case !validName().MatchString(a.As):
		return nil, hint.With(cli.MessageError(fmt.Sprintf("Invalid MCP name %q", a.As)), "--name NAME: lower-case letters, digits and hyphens")
	case a.Via != "" && !slices.Contains(api.Ways, a.Via):
		return nil, hint.With(fmt.Errorf("unknown way %q", a.Via), "use %s", strings.Join(api.Ways, ", "))
	}
	if err := secret.CheckPlace(ctx, a.Secrets); err != nil {
		return nil, err
	}
	file, err := editfile.OpenConfig(a.Config)
	if err != nil {
		return nil, err
	}
	entries, err := schema.Entries(file.Path, file.Old)
	if err == nil && !a.Force && slices.Contains(editfile.EntryNames(entries), a.As) {
		err = hint.With(fmt.Errorf("%q already exists in %s", a.As, file.Name()), "choose another name with --as, or add --force to replace it")
	}
	return file, err
}

var validName = lazyregexp.New(schema.NamePattern)

// find asks the registries one after another for a server.
func find(ctx context.Context, errOut *terminal.Writer, address, name, version string) (*api.Server, error) {
	all, err := clients(address)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, c := range all {
		s, err := c.Get(ctx, name, version)
		if err == nil {
			sayAge(errOut, c)
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, cli.ErrInterrupted
		}
		errs = append(errs, err)
	}
	err = fmt.Errorf("%s: %w", strings.TrimSuffix(name+"@"+version, "@"), errors.Join(errs...))
	if errors.Is(err, api.ErrNotFound) {
		return nil, hint.With(err, "dynmcp search %s", shellescape.Quote(path.Base(name)))
	}
	return nil, err
}

func unpack(ctx context.Context, errOut *terminal.Writer, o *api.Option) error {
	dir, err := conf.StateDir()
	if err != nil {
		return err
	}
	waiting := terminal.ShowProgress(errOut, "fetching "+o.What)
	defer waiting.End()
	return o.Unpack(ctx, filepath.Join(dir, "bundles"), installed)
}

// answers returns the answers given with flags, and asks for the others on a terminal.
func (a *Adding) answers(w *wizard, o *api.Option) (api.Answers, error) {
	questions, err := o.Questions()
	if err != nil {
		return nil, err
	}
	answers, err := a.read(w.cmd.InOrStdin(), questions)
	if err != nil {
		return nil, err
	}
	for i, pair := range a.Set {
		name, value, ok := strings.Cut(pair, "=")
		q := named(questions, name)
		switch {
		case !ok: // it may be a secret
			return nil, hint.With(fmt.Errorf("--set number %d is not NAME=VALUE", i+1), "write it like --set API_KEY=…")
		case q == nil:
			return nil, notAsked(name, questions)
		}
		answers[q.Name] = append(answers[q.Name], value)
	}
	for _, given := range []map[string]string{a.Env, a.Headers} {
		for name, value := range given {
			if q := named(questions, name); q != nil {
				answers[q.Name] = append(answers[q.Name], value)
				delete(given, name)
			}
		}
	}
	if w.ask {
		return answers, w.askAll(questions, answers)
	}
	return answers, nil
}

// read reads the file of --answers.
func (a *Adding) read(in io.Reader, questions []api.Question) (api.Answers, error) {
	answers := api.Answers{}
	if a.Answers == "" {
		return answers, nil
	}
	var text []byte
	var err error
	if a.Answers == "-" {
		text, err = io.ReadAll(io.LimitReader(in, regular.Small))
	} else {
		text, err = regular.Read(context.Background(), a.Answers, regular.Small)
	}
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	if json.Unmarshal(text, &given) != nil { // its errors quote the text, which may be a secret
		return nil, hint.With(errors.New("--answers is not a JSON object of texts"), `write it like {"API_KEY": "…"}`)
	}
	for _, name := range sortedKeys(given) {
		q := named(questions, name)
		if q == nil {
			return nil, notAsked(name, questions)
		}
		answers[q.Name] = append(answers[q.Name], given[name])
	}
	return answers, nil
}

func notAsked(name string, questions []api.Question) error {
	return hint.With(fmt.Errorf("it does not ask for %q", name), "it asks for: %s", cmp.Or(api.Names(questions), "nothing"))
}

// named returns the question called name, or nil.
func named(questions []api.Question, name string) *api.Question {
	for i, q := range questions {
		if strings.EqualFold(q.Name, strings.TrimLeft(name, "-")) || strings.EqualFold(q.Name, name) {
			return &questions[i]
		}
	}
	return nil
}

// missing adds to an error of missing answers how to give them.
func missing(err error) error {
	lacks, ok := errors.AsType[*api.MissingError](err)
	if !ok {
		return err
	}
	var how []string
	for _, q := range lacks.Questions {
		if q.Secret { // a command line is kept by shells and seen by other users
			how = append(how, strings.TrimSpace(fmt.Sprintf(`--answers - reads {%q: "…"} from stdin: %s`, q.Name, about(q))))
			continue
		}
		how = append(how, strings.TrimSpace(fmt.Sprintf("--set %s=… %s", q.Name, about(q))))
	}
	return hint.With(err, "%s", strings.Join(how, "\n      "))
}

// about returns the description of a question, with the values that it accepts.
func about(q api.Question) string {
	var more []string
	if q.Secret {
		more = append(more, "secret")
	}
	if len(q.Choices) > 0 {
		more = append(more, "one of "+terminal.OneLine(strings.Join(q.Choices, ", ")))
	} else if q.Format != "" && q.Format != "string" {
		more = append(more, terminal.OneLine(q.Format))
	}
	if q.Placeholder != "" {
		more = append(more, "such as "+q.Placeholder)
	}
	text := q.Description
	if len(more) > 0 {
		text = strings.TrimSpace(text + " (" + strings.Join(more, "; ") + ")")
	}
	return text
}

// complete adds the values of flags that are not answers to an entry.
func (a *Adding) complete(ctx context.Context, s schema.Server, found *api.Server) schema.Server {
	s.Description = cmp.Or(a.Description, api.Literal(describe.Text(describe.Subject{Name: a.As, Says: []string{found.Description, found.Title}})),
		api.Literal(found.Description), api.Literal(found.Title), "The server "+found.Name+".")
	if a.Sandbox && s.Transport == schema.Stdio {
		s = module.LauncherOf(ctx).Limit(s) // or there would be no such flag
	}
	more, into := a.Headers, &s.Headers
	if s.Transport == schema.Stdio {
		more, into = a.Env, &s.Env
	}
	if *into == nil && len(more) > 0 {
		*into = map[string]string{}
	}
	maps.Copy(*into, more)
	return s
}

// show prints the complete command or address of an entry.
func show(out *terminal.Writer, found *api.Server, o *api.Option, s schema.Server) {
	out.Printf("%s %s of %s\n", found.Name, found.Version, found.From)
	if s.Transport == schema.Stdio {
		out.Printf("  runs:  %s\n", exact(shellescape.QuoteCommand(append([]string{s.Command}, s.Args...))))
		if s.Cwd != "" {
			out.Printf("  in:    %s\n", exact(s.Cwd))
		}
	} else {
		out.Printf("  asks:  %s (%s)\n", exact(s.URL), s.Transport)
	}
	for _, with := range []map[string]string{s.Env, s.Headers} {
		for _, name := range sortedKeys(with) {
			out.Printf("  with:  %s=%s\n", exact(name), exact(with[name]))
		}
	}
	out.Printf("  for:   %s\n", s.Description)
	if o.Note != "" {
		out.Printf("  note:  %s\n", terminal.OneLine(o.Note))
	}
}

// exact returns text on one line with invisible characters escaped.
func exact(text string) string {
	return display.Visible(text, func(r rune) bool { return !unicode.IsGraphic(r) || display.Invisible(r) })
}
