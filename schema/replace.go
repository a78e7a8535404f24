package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/secrets"
)

// SecretUse is a secret in an entry, for ReplaceSecrets.
type SecretUse struct {
	// Where describes the place: "the argument 3", "the header X-Api-Key".
	Where string
	// Name is as in secrets.Secret. For a value of env it is the variable.
	Name string
	// Value is the secret.
	Value string
}

// ReplaceSecrets returns the entry with every secret in it replaced. A value of env
// with a secret in it is replaced as a whole. s is not changed.
func (s Server) ReplaceSecrets(replace func(SecretUse) string) Server {
	text := replacer(replace).text
	s.Command = text("", "command", s.Command, "the command")
	s.URL = text("", "url", s.URL, "the url")
	s.OpenAPI = text("", "openapi", s.OpenAPI, "the address of the OpenAPI document")
	before := ""
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		s.Args[i] = text("args", before, arg, "argument "+strconv.Itoa(i+1))
		before = secrets.Option(arg)
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		s.Env[key] = text("env", key, s.Env[key], "the variable "+key)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		s.Headers[key] = text("headers", key, s.Headers[key], "the header "+key)
	}
	if s.Auth != nil {
		auth := *s.Auth
		auth.ClientSecret = text("auth", "client_secret", auth.ClientSecret, "the client secret")
		auth.PrivateKey = text("auth", "private_key", auth.PrivateKey, "the private key")
		auth.IDPClientSecret = text("auth", "idp_client_secret", auth.IDPClientSecret, "the client secret")
		s.Auth = &auth
	}
	return s
}

// SecretPlaces describes the places of secrets in the entry, each once.
func (s Server) SecretPlaces() (places []string) {
	s.ReplaceSecrets(func(found SecretUse) string {
		if !slices.Contains(places, found.Where) {
			places = append(places, found.Where)
		}
		return found.Value
	})
	return places
}

type replacer func(SecretUse) string

// text returns a value with every secret in it replaced. within and key are those of
// secrets.Find.
func (replace replacer) text(within, key, value, where string) string {
	var b strings.Builder
	shown := 0
	for _, found := range secrets.Find(within, key, value) {
		if within == "env" {
			return replace(SecretUse{where, key, value})
		}
		b.WriteString(value[shown:found.From])
		b.WriteString(replace(SecretUse{where, found.Name, value[found.From:found.To]}))
		shown = found.To
	}
	return b.String() + value[shown:]
}
