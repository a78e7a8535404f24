package entries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/described"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
)

type addFlags struct {
	server       schema.Server
	env, headers []string
	choice       conf.Choice
	config       string // the file that is chosen
	force        bool
	dryRun       bool
	lazy         bool
	sandbox      bool
	warm         bool
	forms        []module.Adder          // of modules
	formOf       map[string]module.Adder // by their flags
}

// Add adds a server to a config.
var Add = cli.Verb{
	Use:   "add NAME [flags] [-- command args…]",
	Group: cli.SetUp,
	Short: "Add a server to the config file",
	Long: `Add a server to the config file: a program with its arguments, or an address. Comments,
layout and all other entries of the file stay as they are, and the old file is kept with
the suffix .bak. A description makes the server lazy: the model reads it, and the server
starts when it is first used. --lazy starts the server once and writes one of what its
tools are about.

${NAME} in a value is written as it is, and replaced from the environment or .env
when dynmcp starts: keep secrets there.`,
	Example: `  dynmcp add files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  dynmcp add git --command git-mcp --env 'TOKEN=${GITHUB_TOKEN}' \
    --description "Read and search git history."
  dynmcp add docs --url https://mcp.example.com/mcp \
    --header 'Authorization: Bearer ${TOKEN}'`,
	Args:     cobra.ArbitraryArgs,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var flags addFlags
		s := &flags.server
		f := cmd.Flags()
		f.SortFlags = false
		f.StringVar(&s.Transport, "transport", "", "stdio, streamable-http or sse (default: stdio for a command, streamable-http for a url)")
		f.StringVar(&s.Command, "command", "", "the `program` to run; it and its arguments may follow -- instead")
		f.StringArrayVar(&s.Args, "args", nil, "an `argument` of the program; may be repeated")
		f.StringArrayVar(&flags.env, "env", nil, "an environment variable of the program, `KEY=VALUE`; may be repeated")
		f.StringVar(&s.Cwd, "cwd", "", "the `directory` the program runs in")
		f.StringVar(&s.URL, "url", "", "the `address` of a remote server")
		f.StringArrayVar(&flags.headers, "header", nil, "a header of every request, `\"Name: Value\"`; may be repeated")
		f.StringVar(&s.Description, "description", "", "what the server is good for, `text` for the model; makes it lazy")
		f.BoolVar(&flags.lazy, "lazy", false, "start the server once and describe it, if --description does not")
		flags.choice.Add(cmd, "add it to")
		if module.LauncherOf(cmd.Context()) != nil {
			f.BoolVar(&flags.sandbox, "sandbox", false, "limit the program to what every sandbox allows (dynmcp sandbox NAME says what)")
		}
		f.BoolVar(&flags.force, "force", false, "replace a server of the same name")
		f.BoolVar(&flags.dryRun, "dry-run", false, "show the diff of the config and write nothing")
		warm.AddWarmFlag(cmd, &flags.warm)
		flags.addForm(cmd)
		cli.CompleteValues(cmd, map[string][]string{"transport": {schema.Stdio, schema.StreamableHTTP, schema.SSE}})
		return flags.run
	},
}

// run adds the server named by the first argument.
func (f *addFlags) run(cmd *cobra.Command, args []string) error {
	s := &f.server
	var command []string
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	switch {
	case len(args) == 0:
		return hint.With(errors.New("no server name given"), "dynmcp add NAME -- COMMAND ARGS…")
	case len(args) > 1:
		return hint.With(fmt.Errorf("unexpected argument %q", args[1]), "write the server's command and its arguments after --")
	case cmd.Flags().Changed("description") && strings.TrimSpace(s.Description) == "":
		return hint.With(errors.New("the description is empty"), "say what the server is good for, or leave the flag out")
	}
	s.Name = args[0]
	var err error
	if f.config, err = f.choice.File(); err != nil {
		return err
	}
	f.choice.Say(cli.Stderr(cmd), f.config) // first, since keep may write beside it
	keep := func() error { return nil }
	if i := slices.IndexFunc(f.forms, func(form module.Adder) bool { return form.Takes(s.Name) }); i >= 0 {
		keep, err = f.byModule(cmd, f.forms[i], command)
	} else {
		err = f.complete(cmd, command)
	}
	if err == nil && !f.dryRun {
		err = keep()
	}
	if err != nil {
		return err
	}
	path, err := runAdd(cmd.Context(), cli.Stdout(cmd), cli.Stderr(cmd), *f)
	if err != nil || f.dryRun || !f.warm && !cli.Stderr(cmd).Interactive {
		return err
	}
	return warm.OfferWarm(cmd, conf.Flags{Config: path}, f.warm, s.Name)
}

var validName = lazyregexp.New(schema.NamePattern)

// addForm adds the form of add that a module has, and its flags.
func (f *addFlags) addForm(cmd *cobra.Command) {
	f.formOf = map[string]module.Adder{}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { f.formOf[flag.Name] = nil })
	for _, m := range module.Of(cmd.Context()) {
		if m.Adder != nil {
			form := m.Adder()
			form.AddFlags(cmd)
			long, example := form.Help()
			cmd.Long += "\n\n" + long
			cmd.Example += "\n" + example
			f.forms = append(f.forms, form)
			cmd.Flags().VisitAll(func(flag *pflag.Flag) {
				if _, known := f.formOf[flag.Name]; !known {
					f.formOf[flag.Name] = form
				}
			})
		}
	}
}

// byModule completes the server by a form of a module. keep stores its secrets.
func (f *addFlags) byModule(cmd *cobra.Command, form module.Adder, command []string) (keep func() error, err error) {
	s := &f.server
	given := module.Given{Config: f.config, Description: s.Description, URL: s.URL, Sandbox: f.sandbox, Force: f.force}
	given.Program = len(command) > 0 || s.Transport != "" || s.Command != "" || len(s.Args) > 0 || s.Cwd != ""
	if err := cmp.Or(f.parseEnv(), f.parseHeaders()); err != nil {
		return nil, err
	}
	given.Env, given.Headers = s.Env, s.Headers
	if f.server, keep, err = form.Entry(cmd, s.Name, given); err != nil {
		return nil, err
	}
	return keep, f.server.Check()
}

// complete completes the server from the flags, and checks them.
func (f *addFlags) complete(cmd *cobra.Command, command []string) error {
	s := &f.server
	var misplaced error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if form := f.formOf[flag.Name]; form != nil && misplaced == nil {
			what, remedy := form.Flags()
			misplaced = hint.With(fmt.Errorf("--%s goes with %s", flag.Name, what), "%s", remedy)
		}
	})
	if misplaced != nil {
		return misplaced
	}
	if !validName().MatchString(s.Name) {
		return hint.With(cli.MessageError(fmt.Sprintf("Invalid MCP name %q", s.Name)), "use lower-case letters, digits and hyphens, with no hyphen at the start")
	}
	if len(command) > 0 {
		if s.Command != "" || len(s.Args) > 0 {
			return hint.With(errors.New("the command is given twice"), "write it after --, or with --command and --args")
		}
		s.Command, s.Args = command[0], command[1:]
	}
	if err := cmp.Or(f.checkTransport(), f.parseEnv(), f.parseHeaders()); err != nil {
		return err
	}
	if f.sandbox {
		*s = module.LauncherOf(cmd.Context()).Limit(*s)
	}
	return s.Check()
}

var webAddress = lazyregexp.New(`^(?i:https?)://[^/]|[$][{]`)

// checkTransport sets a missing transport, and checks that the flags fit it.
func (f *addFlags) checkTransport() error {
	s := &f.server
	if s.Transport == "" {
		s.Transport = schema.Stdio
		if s.URL != "" {
			s.Transport = schema.StreamableHTTP
		}
	}
	switch s.Transport {
	case schema.Stdio:
		switch {
		case s.Command == "":
			return hint.With(errors.New("--command is required for transport stdio"), "dynmcp add %s -- COMMAND ARGS…, or --url for a remote server", s.Name)
		case s.URL != "" || len(f.headers) > 0:
			return hint.With(errors.New("--url and --header do not go with a command"), "use one or the other")
		}
	case schema.StreamableHTTP, schema.SSE:
		switch {
		case s.URL == "":
			return hint.With(fmt.Errorf("--url is required for transport %s", s.Transport), "dynmcp add %s --url https://mcp.example.com/mcp", s.Name)
		case !webAddress().MatchString(s.URL):
			return hint.With(errors.New("--url is not an http or https URL"), "write it like https://mcp.example.com/mcp")
		case s.Command != "" || len(s.Args) > 0 || len(f.env) > 0 || s.Cwd != "" || f.sandbox:
			return hint.With(fmt.Errorf("--command, --args, --env, --cwd and --sandbox do not go with transport %s", s.Transport), "use one or the other")
		}
	default:
		return hint.With(fmt.Errorf("unknown transport %q", s.Transport), "use stdio, streamable-http or sse")
	}
	return nil
}

// parseEnv parses --env. Its errors do not quote a pair, whose value may be a secret.
func (f *addFlags) parseEnv() error {
	if len(f.env) > 0 {
		f.server.Env = map[string]string{}
	}
	for i, pair := range f.env {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return hint.With(fmt.Errorf("--env number %d is not KEY=VALUE", i+1), "write it like --env 'TOKEN=${TOKEN}'")
		}
		f.server.Env[key] = value
	}
	return nil
}

// parseHeaders parses --header, like parseEnv.
func (f *addFlags) parseHeaders() error {
	if len(f.headers) > 0 {
		f.server.Headers = map[string]string{}
	}
	for i, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return hint.With(fmt.Errorf("--header number %d is not \"Name: Value\"", i+1), "write it like --header 'Authorization: Bearer ${TOKEN}'")
		}
		f.server.Headers[name] = strings.TrimSpace(value)
	}
	return nil
}

// runAdd adds the server, and returns the path of the config, "" with --dry-run.
func runAdd(ctx context.Context, out, errOut *terminal.Writer, flags addFlags) (path string, err error) {
	file, unlock, err := editfile.LockConfig(flags.config)
	if err != nil {
		return "", err
	}
	defer unlock()
	entries, err := schema.Entries(file.Path, file.Old)
	if err != nil {
		return "", err
	}
	name := flags.server.Name
	i := slices.IndexFunc(entries, func(e schema.Entry) bool { return e.Name == name })
	if i >= 0 && !flags.force {
		return "", hint.With(fmt.Errorf("%q already exists in %s, line %d", name, file.Name(), entries[i].Line), "choose another name, or add --force to replace it")
	}
	if flags.lazy && flags.server.Description == "" {
		if flags.server.Description, err = describe(ctx, filepath.Dir(file.Path), flags.server, errOut); err != nil {
			return "", err
		}
	}
	text, err := schema.SetServer(file.Path, file.Old, flags.server)
	if err != nil {
		return "", err
	}
	if flags.dryRun {
		editfile.ShowDiff(out, file.Path, file.Old, text, mask.File)
		return "", out.Err
	}
	if err := file.Replace(text); err != nil {
		return "", err
	}
	verb := "Added %q to %s\n"
	if i >= 0 {
		verb = "Replaced %q in %s\n"
	}
	out.Printf(verb, name, file.Name())
	for _, place := range flags.server.SecretPlaces() {
		errOut.Printf("%s may hold a secret in plain text; write ${NAME} in its place, and NAME=… into the .env file\n", place)
	}
	return cmp.Or(file.Link, file.Path), out.Err
}

// describe starts a server and returns a description made from its tools.
func describe(ctx context.Context, dir string, s schema.Server, errOut *terminal.Writer) (string, error) {
	proposals, failed, err := described.Propose(ctx, dir, []schema.Server{s}, errOut)
	if text := proposals[s.Name]; err != nil || text != "" {
		return text, err
	}
	why := "it has no tools"
	if err := failed[s.Name]; err != nil {
		why = "it did not start: " + selfhost.Explain(err, 0).Text
	}
	return "", hint.With(fmt.Errorf("nothing describes %s: %s", s.Name, why), "say what it is good for: --description TEXT")
}
