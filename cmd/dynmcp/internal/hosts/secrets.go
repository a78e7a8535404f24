package hosts

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
)

// NoteSecrets notes what may be a secret in the server.
func (s *Server) NoteSecrets() {
	noted := map[string]bool{}
	s.ReplaceSecrets(func(found schema.SecretUse) string {
		if !noted[found.Where] {
			s.note("%s may hold a secret in plain text; --vars puts a variable in its place", found.Where)
		}
		noted[found.Where] = true
		return found.Value
	})
}

// Variables are those that take the place of secrets.
type Variables struct {
	// Values are the secrets by the names of their variables.
	Values map[string]string
	set    map[string]string // what is in the .env file already
	others map[string]string // of the environment
	used   map[string]bool   // names that texts refer to
}

// NewVariables returns none. A variable of set, what the .env file has, is used again
// for the same secret. A name that means something else, there, in environ or in
// the texts, is not used.
func NewVariables(set map[string]string, environ []string, texts ...string) *Variables {
	v := &Variables{Values: map[string]string{}, set: set, others: map[string]string{}, used: map[string]bool{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		v.others[name] = value
	}
	for _, text := range texts {
		for _, name := range nameInReference().FindAllStringSubmatch(text, -1) {
			v.used[name[1]] = true
		}
	}
	return v
}

var nameInReference = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// MoveSecrets puts references to variables in place of what may be secrets in the server.
// What reference returns for a name takes the place of the secret.
func (s *Server) MoveSecrets(v *Variables, reference func(name string) string) {
	s.Server = s.ReplaceSecrets(func(found schema.SecretUse) string {
		name := v.Put(s.Name, found.Name, found.Value)
		s.note("%s is taken from %s", found.Where, reference(name))
		return reference(name)
	})
}

// variableKey matches names that are those of variables already.
var variableKey = lazyregexp.New(`^[A-Z][A-Z0-9_]*_[A-Z0-9_]+$`)

// Put returns the variable for a secret of a server.
func (v *Variables) Put(server, name, value string) string {
	prefix := schema.VariableName(server)
	base := schema.VariableName(camelCase().ReplaceAllString(name, "${1}_${2}"))
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
	for i := 1; ; i++ {
		candidate := candidateName(base, long, i)
		if old, set := v.set[candidate]; set && old == value {
			return candidate
		} else if set {
			continue
		}
		if old, mine := v.Values[candidate]; mine && old == value {
			return candidate
		} else if mine || v.used[candidate] {
			continue
		}
		if old, set := v.others[candidate]; !set || old == value {
			v.Values[candidate] = value
			return candidate
		}
	}
}

// candidateName returns the i-th name that a variable may have: the short one, the long one,
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

var camelCase = lazyregexp.New(`([a-z0-9])([A-Z])`)
