package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
)

// addFlags describe the server to add.
type addFlags struct {
	server       schema.Server
	env, headers []string
	config       string
	force        bool
	warm         bool
}

func addCommand() *cobra.Command {
	var flags addFlags
	s := &flags.server
	cmd := &cobra.Command{
		Use:   "add NAME [flags] [-- command args…]",
		Short: "Add a server to the config file",
		Long: `Add a server to the config file: a program with its arguments, or an address.
Comments, layout and all other entries of the file stay as they are, and the old
file is kept with the suffix .bak. A description makes the server lazy: the model
reads it, and the server starts when it is first used.

${NAME} in a value is written as it is, and replaced from the environment or .env
when dynmcp starts: keep secrets there.`,
		Example: `  dynmcp add files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  dynmcp add git --command git-mcp --env 'TOKEN=${GITHUB_TOKEN}' \
    --description "Read and search git history."
  dynmcp add docs --url https://mcp.example.com/mcp \
    --header 'Authorization: Bearer ${TOKEN}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
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
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` (default: the one in the working directory)")
	f.BoolVar(&flags.force, "force", false, "replace a server of the same name")
	addWarmFlag(cmd, &flags.warm)
	completeValues(cmd, map[string][]string{"transport": {schema.Stdio, schema.StreamableHTTP, schema.SSE}})
	return cmd
}

// run adds the server that the first of args names.
func (f *addFlags) run(cmd *cobra.Command, args []string) error {
	s := &f.server
	var command []string
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	switch {
	case len(args) == 0:
		return hinted(errors.New("no server name given"), "dynmcp add NAME -- COMMAND ARGS…")
	case len(args) > 1:
		return hinted(fmt.Errorf("unexpected argument %q", args[1]), "write the server's command and its arguments after --")
	case cmd.Flags().Changed("description") && strings.TrimSpace(s.Description) == "":
		return hinted(errors.New("the description is empty"), "say what the server is good for, or leave the flag out")
	}
	s.Name = args[0]
	if err := f.complete(command); err != nil {
		return err
	}
	path, err := runAdd(stdout(cmd), stderr(cmd), *f)
	if err != nil || !f.warm && !stderr(cmd).Interactive {
		return err
	}
	return offerWarm(cmd, configFlags{config: path}, f.warm, s.Name)
}

var validName = lazyregexp.New(schema.NamePattern)

// complete completes the server of the flags, or says which of them is wrong.
func (f *addFlags) complete(command []string) error {
	s := &f.server
	if !validName().MatchString(s.Name) {
		return hinted(messageError(fmt.Sprintf("Invalid MCP name %q", s.Name)), "use lower-case letters, digits and hyphens, with no hyphen at the start")
	}
	if len(command) > 0 {
		if s.Command != "" || len(s.Args) > 0 {
			return hinted(errors.New("the command is given twice"), "write it after --, or with --command and --args")
		}
		s.Command, s.Args = command[0], command[1:]
	}
	for _, step := range []func() error{f.checkTransport, f.parseEnv, f.parseHeaders} {
		if err := step(); err != nil {
			return err
		}
	}
	return s.Check()
}

var webAddress = lazyregexp.New(`^(?i:https?)://[^/]|[$][{]`)

// checkTransport sets the transport where it is left out, and checks that the flags
// go with it.
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
			return hinted(errors.New("--command is required for transport stdio"), "dynmcp add %s -- COMMAND ARGS…, or --url for a remote server", s.Name)
		case s.URL != "" || len(f.headers) > 0:
			return hinted(errors.New("--url and --header do not go with a command"), "use one or the other")
		}
	case schema.StreamableHTTP, schema.SSE:
		switch {
		case s.URL == "":
			return hinted(fmt.Errorf("--url is required for transport %s", s.Transport), "dynmcp add %s --url https://mcp.example.com/mcp", s.Name)
		case !webAddress().MatchString(s.URL):
			return hinted(errors.New("--url is not an http or https URL"), "write it like https://mcp.example.com/mcp")
		case s.Command != "" || len(s.Args) > 0 || len(f.env) > 0 || s.Cwd != "":
			return hinted(fmt.Errorf("--command, --args, --env and --cwd do not go with transport %s", s.Transport), "use one or the other")
		}
	default:
		return hinted(fmt.Errorf("unknown transport %q", s.Transport), "use stdio, streamable-http or sse")
	}
	return nil
}

// parseEnv never shows a pair that is wrong: its value may be a secret.
func (f *addFlags) parseEnv() error {
	if len(f.env) > 0 {
		f.server.Env = map[string]string{}
	}
	for i, pair := range f.env {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return hinted(fmt.Errorf("--env number %d is not KEY=VALUE", i+1), "write it like --env 'TOKEN=${TOKEN}'")
		}
		f.server.Env[key] = value
	}
	return nil
}

func (f *addFlags) parseHeaders() error {
	if len(f.headers) > 0 {
		f.server.Headers = map[string]string{}
	}
	for i, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return hinted(fmt.Errorf("--header number %d is not \"Name: Value\"", i+1), "write it like --header 'Authorization: Bearer ${TOKEN}'")
		}
		f.server.Headers[name] = strings.TrimSpace(value)
	}
	return nil
}

// runAdd adds the server, and returns the path of the config.
func runAdd(out, errOut *terminal.Writer, flags addFlags) (path string, err error) {
	file, unlock, err := lockConfig(flags.config)
	if err != nil {
		return "", err
	}
	defer unlock()
	entries, err := schema.Entries(file.path, file.old)
	if err != nil {
		return "", err
	}
	name := flags.server.Name
	i := slices.IndexFunc(entries, func(e schema.Entry) bool { return e.Name == name })
	if i >= 0 && !flags.force {
		return "", hinted(fmt.Errorf("%q already exists in %s, line %d", name, file.name(), entries[i].Line), "choose another name, or add --force to replace it")
	}
	text, err := schema.SetServer(file.path, file.old, flags.server)
	if err != nil {
		return "", err
	}
	if err := file.replace(text); err != nil {
		return "", err
	}
	verb := "Added %q to %s\n"
	if i >= 0 {
		verb = "Replaced %q in %s\n"
	}
	out.Printf(verb, name, file.name())
	flags.server.ReplaceSecrets(func(found schema.SecretUse) string {
		errOut.Printf("%s may hold a secret in plain text; write ${NAME} in its place, and NAME=… into the .env file\n", found.Where)
		return found.Value
	})
	return cmp.Or(file.link, file.path), nil
}
