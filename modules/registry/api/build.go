package api

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
)

// Build makes the entry of a config. Its error is a *MissingError if required answers are
// missing.
func (o *Option) Build(name string, answers Answers) (schema.Server, error) {
	if answers == nil {
		answers = Answers{}
	}
	r := &resolver{answers: answers}
	s := o.resolve(r)
	s.Name = name
	s = s.WithKeys(Keys{Registry: o.server.Name + "@" + o.server.Version})
	for given := range answers {
		if !slices.ContainsFunc(r.questions, func(q Question) bool { return q.Name == given }) {
			r.fail(fmt.Errorf("it does not ask for %s", line(given, 60)))
		}
	}
	switch {
	case r.err != nil:
		return s, r.err
	case len(r.missing) > 0:
		return s, &MissingError{r.missing}
	}
	return s, s.Check()
}

// resolve makes the entry with the answers of r, or collects the questions.
func (o *Option) resolve(r *resolver) (s schema.Server) {
	if o.remote != nil {
		s.Transport = o.remote.Type
		s.URL = r.address(*o.remote)
		s.Headers = r.headers(o.remote.Headers)
		return s
	}
	s.Transport = schema.Stdio
	s.Env = r.environment(o.pkg.EnvironmentVariables)
	if o.pkg.RegistryType == MCPB {
		o.bundle.resolve(r, &s)
	} else {
		o.command(r, &s)
	}
	s.Args = append(s.Args, r.arguments(o.pkg.PackageArguments)...)
	if len(s.Env) == 0 {
		s.Env = nil
	}
	return s
}

// command sets the command that runs a package, without the package's own arguments.
func (o *Option) command(r *resolver, s *schema.Server) {
	p := o.pkg
	all := programs[p.RegistryType]
	if all == nil {
		return // Missing says why
	}
	given, err := permit(all[0], r.arguments(p.RuntimeArguments), o.spec, p.Identifier, p.Identifier+"@"+p.Version, p.Identifier+":"+p.Version)
	if err != nil && r.answers != nil {
		r.fail(err)
	}
	if p.RegistryType == OCI {
		given = container(given, s.Env)
		if all := reaches(given); len(all) > 0 {
			o.Note = "it reaches beyond its container: " + strings.Join(all, ", ")
		}
	}
	s.Command = o.program
	s.Args = slices.Concat(packages.Runners[all[0]].Before, given, []string{o.spec})
}

// container passes the variables of the entry into the container by their names, so that
// no secret is on a command line.
func container(words []string, env map[string]string) []string {
	var out []string
	passed := map[string]bool{}
	for i := 0; i < len(words); i++ {
		if (words[i] == "-e" || words[i] == "--env") && i+1 < len(words) {
			i++
			name, value, ok := strings.Cut(words[i], "=")
			if ok && strings.Contains(value, "${") && variableName().MatchString(name) {
				env[name], words[i] = value, name
			}
			passed[name] = true
			out = append(out, "-e", words[i])
			continue
		}
		out = append(out, words[i])
	}
	for _, name := range sorted(env) {
		if !passed[name] {
			out = append(out, "-e", name)
		}
	}
	return out
}

// arguments returns the words of a command line that arguments make.
func (r *resolver) arguments(all []Argument) (words []string) {
	for i, a := range all {
		switch {
		case a.Type == "positional":
			name := a.ValueHint
			if name == "" {
				name = fmt.Sprintf("argument%d", i+1)
			}
			words = append(words, r.values(a.Template, name, "the argument "+name, a.IsRepeated)...)
		case a.Type != "named" || a.Name == "":
			r.fail(fmt.Errorf("the argument %d is neither positional nor named", i+1))
		case a.bare():
			words = append(words, Literal(a.Name))
		default:
			for _, value := range r.values(a.Template, strings.TrimLeft(a.Name, "-"), "the argument "+line(a.Name, 60), a.IsRepeated) {
				words = append(words, r.flag(a.Name, value)...)
			}
		}
	}
	return words
}

// bare reports whether an argument is a flag without a value.
func (a Argument) bare() bool {
	return a.Value == "" && a.Default == "" && a.Placeholder == "" && a.ValueHint == "" && a.Format == "" && len(a.Choices) == 0 &&
		!a.IsSecret && !a.IsRepeated && (!a.IsRequired || a.Description == "")
}

// flag returns the words of an argument with a name: --name=value, and -n value.
func (r *resolver) flag(name, value string) []string {
	if strings.HasSuffix(name, "$") {
		r.fail(errors.New("the name of an argument ends with $"))
	}
	switch name = Literal(name); {
	case strings.HasSuffix(name, "="):
		return []string{name + value}
	case strings.HasPrefix(name, "--"):
		return []string{name + "=" + value}
	}
	return []string{name, value}
}

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// steering matches variables that make programs load or fetch other code.
	steering = lazyregexp.New(`(?i)` +
		`^(LD|DYLD|NPM|NPM_CONFIG|UV|PIP|DOCKER|CONTAINER|NUGET|DOTNET|GIT|BUN|PNPM|YARN|COREPACK)_` +
		`|^(NODE|PERL5|RUBY|PERL5DB|_?JAVA_TOOL|JDK_JAVA)_?OPT(IONS)?$` +
		`|^NODE_(PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)$|^PYTHON|^(PERL5|RUBY)LIB$` +
		`|^(PATH|HOME|USERPROFILE|APPDATA|LOCALAPPDATA|ENV|BASH_ENV|SHELL|IFS|TMPDIR|COMSPEC|PATHEXT|XDG_.*)$` +
		`|^(SSL_CERT_.*|HTTPS?_PROXY|ALL_PROXY)$`)
)

// environment returns the variables of a program.
func (r *resolver) environment(all []KeyValue) map[string]string {
	env := map[string]string{}
	for _, v := range all {
		name := line(v.Name, 60)
		chosen := v.Value != "" || v.Default != ""
		switch {
		case !variableName().MatchString(v.Name):
			r.fail(fmt.Errorf("%s is not the name of a variable", name))
		case chosen && steering().MatchString(v.Name):
			r.fail(fmt.Errorf("it sets %s, with which the program could run something else", name))
		}
		for _, value := range r.values(v.Template, v.Name, "the variable "+name, false) {
			env[v.Name] = value
		}
	}
	return env
}

func (r *resolver) headers(all []KeyValue) map[string]string {
	var headers map[string]string
	for _, v := range all {
		t := v.Template
		t.IsSecret = t.IsSecret || strings.EqualFold(v.Name, "authorization")
		for _, value := range r.values(t, v.Name, "the header "+line(v.Name, 60), false) {
			if headers == nil {
				headers = map[string]string{}
			}
			headers[v.Name] = value
		}
	}
	return headers
}

var braces = lazyregexp.New(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// address returns the address of a remote. Variables without a description are asked for too,
// because an address with braces is invalid.
func (r *resolver) address(t Transport) string {
	described := map[string]Input{}
	for _, found := range braces().FindAllStringSubmatch(t.URL, -1) {
		input := t.Variables[found[1]]
		input.IsRequired = true
		described[found[1]] = input
	}
	all := r.values(Template{Input: Input{Value: t.URL}, Variables: described}, "url", "the address", false)
	if len(all) == 0 || r.answers == nil {
		return ""
	}
	u, err := url.Parse(reference().ReplaceAllString(all[0], "x"))
	if err == nil {
		err = allowed(u, isPrivate(u.Hostname()))
	}
	if err != nil {
		r.fail(fmt.Errorf("its address: %w", err))
	}
	return all[0]
}
