// Package reference replaces references in texts: ${NAME} and ${NAME:-default} to variables,
// ${file:PATH} and those of the schemes of modules, such as ${keyring:NAME}, to secrets, and ${user:NAME}
// to what a user keeps.
package reference

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// user matches a reference to a value of the user for whom a server is called. ${user:-x} is a
	// variable with a default.
	user = lazyregexp.New(`^\$\{user:([A-Za-z_][A-Za-z0-9_]*)\}$`)
)

// A Secret is the result of resolving a reference to a secret.
type Secret struct{ Value, Problem, Hint string }

// An Expansion is a text with its references replaced.
type Expansion struct {
	Text       string
	Expanded   bool     // there was a reference
	Values     []string // of inserted variables, without defaults
	Missing    []string // undefined variables without a default
	Unexpanded bool     // a ${…} that is no reference stays as it is
	User       bool     // a ${user:NAME} stays as it is, for ExpandUser
	Nested     string   // the text with a ${…} in it: a default or a reference

	Secrets []string // values of inserted secrets
	Failed  []Secret // secrets that could not be found
	Unasked bool     // a reference to a secret stays as it is
}

// Expand replaces the references in s. Values are not expanded again. A default also replaces
// an empty variable. $${…} is an escaped ${…}. Everything else stays, including a lone $ and
// an unclosed ${. found maps references to secrets.
func Expand(s string, variables map[string]string, found map[string]Secret) Expansion {
	var out Expansion
	var b strings.Builder
	for s != "" {
		plain, reference, rest := Next(s)
		b.WriteString(plain)
		b.WriteString(out.replace(reference, variables, found))
		s = rest
	}
	out.Text = b.String()
	return out
}

// Next cuts s before and after its first ${…} or $${…}.
func Next(s string) (plain, reference, rest string) {
	begin := strings.Index(s, "${")
	if begin < 0 {
		return s, "", ""
	}
	length := strings.IndexByte(s[begin:], '}') + 1
	if length == 0 {
		return s, "", ""
	}
	end := begin + length
	if begin > 0 && s[begin-1] == '$' {
		begin--
	}
	return s[:begin], s[begin:end], s[end:]
}

// In reports whether a text has a ${…}, of a variable or not.
func In(s string) bool {
	_, reference, _ := Next(s)
	return reference != ""
}

// File is the scheme of references that need no module.
const File = "file"

// Scheme returns the scheme of a reference to a secret, "" for another reference. ${file:-x} is a
// variable with a default.
func Scheme(reference string) string {
	inner, ok := strings.CutPrefix(reference, "${")
	name, rest, found := strings.Cut(inner, ":")
	if !ok || !found || strings.HasPrefix(rest, "-") || name != File && modules[name] == "" {
		return ""
	}
	return name
}

// IsSecret reports whether a reference is one to a secret.
func IsSecret(reference string) bool { return Scheme(reference) != "" }

// Lacking says what a scheme needs that a program without its module does not have.
func Lacking(scheme string) string {
	return "needs the module " + modules[scheme] + ", which this build does not have"
}

// hasSecret reports whether a text has a reference to a secret.
func hasSecret(s string) bool {
	for s != "" {
		var one string
		if _, one, s = Next(s); IsSecret(one) {
			return true
		}
	}
	return false
}

// ExpandUser replaces each ${user:NAME} in a text that Expand has returned. missing are the names
// that values lacks.
func ExpandUser(s string, values map[string]string) (text string, missing []string) {
	var b strings.Builder
	for s != "" {
		plain, reference, rest := Next(s)
		b.WriteString(plain)
		if name := userName(reference); name == "" {
			b.WriteString(reference)
		} else if value, ok := values[name]; ok {
			b.WriteString(value)
		} else {
			missing = append(missing, name)
		}
		s = rest
	}
	return b.String(), missing
}

// userName returns the name in a ${user:NAME}, "" for another reference.
func userName(reference string) string {
	if m := user().FindStringSubmatch(reference); m != nil {
		return m[1]
	}
	return ""
}

// IsNested reports whether a reference has another one in it.
func IsNested(reference string) bool { return In(reference[1:]) }

// replace returns the value of a reference.
func (e *Expansion) replace(reference string, variables map[string]string, found map[string]Secret) string {
	if reference == "" || strings.HasPrefix(reference, "$$") {
		return strings.TrimPrefix(reference, "$")
	}
	if IsSecret(reference) {
		return e.replaceSecret(reference, found)
	}
	if userName(reference) != "" {
		e.User = true
		return reference
	}
	name, fallback, hasFallback := strings.Cut(reference[2:len(reference)-1], ":-")
	if !variableName().MatchString(name) {
		e.Unexpanded = true
		return reference
	}
	e.Expanded = true
	value, defined := variables[name]
	switch {
	case strings.Contains(fallback, "${"):
		e.Nested = "a default"
	case hasFallback && value == "":
		return fallback
	case defined && hasSecret(value):
		e.Failed = append(e.Failed, Secret{Problem: "the value of " + name + " is a reference to a secret",
			Hint: "write the reference in the config in place of ${" + name + "}: values of variables are not expanded"})
	case defined:
		e.Values = append(e.Values, value)
	case !slices.Contains(e.Missing, name):
		e.Missing = append(e.Missing, name)
	}
	return value
}

func (e *Expansion) replaceSecret(reference string, found map[string]Secret) string {
	e.Expanded = true
	s, asked := found[reference]
	switch {
	case IsNested(reference):
		e.Nested = "a reference"
	case !asked:
		e.Unasked = true
	case s.Problem != "":
		e.Failed = append(e.Failed, s)
	default:
		e.Secrets = append(e.Secrets, s.Value)
		return s.Value
	}
	return reference
}
