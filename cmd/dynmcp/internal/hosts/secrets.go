package hosts

import (
	"maps"
	"slices"
	"strings"

	"dynmcp/schema"
)

// HideSecrets notes what looks like a secret in the server. With vars, references
// to variables take the place of those in env and headers; in arguments and
// addresses nobody can say where a secret begins and ends.
func (s *Server) HideSecrets(vars bool) {
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value := values[key]
			switch {
			case !schema.LooksSecret(key, value):
			case vars:
				values[key] = s.variable(key, value)
			default:
				s.note("%s looks like a secret in plain text; --vars puts a variable in its place", key)
			}
		}
	}
	flag := ""
	for _, arg := range s.Args {
		if schema.LooksSecret(flag, arg) {
			s.note("an argument looks like a secret in plain text; write ${NAME} in its place")
		}
		flag = ""
		if strings.HasPrefix(arg, "-") {
			flag = arg
		}
	}
	if schema.LooksSecret("url", s.URL) {
		s.note("the url may hold a secret in plain text; write ${NAME} in its place")
	}
}

// variable returns a reference in place of a secret. Bearer and its like stay.
func (s *Server) variable(key, value string) string {
	name := variableName(key)
	if _, isHeader := s.Headers[key]; isHeader {
		name = strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) + "_" + name
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	s.note("set the variable %s: %s is taken from it", name, key)
	if scheme, _, ok := strings.Cut(value, " "); ok && strings.EqualFold(key, "Authorization") {
		return scheme + " ${" + name + "}"
	}
	return "${" + name + "}"
}
