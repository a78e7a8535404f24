package secrets

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// secretWords occur in the names of options and variables that hold a secret, secretParts occur in them
// between hyphens and underscores; plainName matches names that only look like one.
var (
	secretWords = []string{"key", "token", "secret", "passw", "passphrase", "pwd", "credential", "auth", "bearer", "cookie", "dsn", "jwt", "signature", "webhook", "connectionstring", "connection_string", "connstr"}
	secretParts = []string{"pat", "pass", "sig", "cred", "creds", "salt", "otp", "totp"}
	plainName   = lazyregexp.New(`(?i)(?:^|[_-])(?:file|path|dir|directory|type|mode|method|limit|count|length|size|provider|ttl|expiry|timeout|env|env_?var|vars?)$|(?:^|[_-])(?:max|num|public)[_-]|tokens$|author(?:s|ity)?$|keyword|keyboard|keyspace|tokeniz`)
)

// Named reports whether a name is that of an option or variable that holds a secret.
func Named(key string) bool {
	name := strings.ToLower(key)
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' })
	isPart := func(part string) bool { return slices.Contains(parts, part) }
	return (hasOneOf(name, secretWords) || slices.ContainsFunc(secretParts, isPart)) && !plainName().MatchString(strings.TrimLeft(key, "-"))
}

// Ambiguous names: variables that may hold a secret, and options of one letter, which mean a port or a
// project as often as a key. Their values decide.
var (
	vagueVariable = lazyregexp.New(`(?i)(?:^|_)(?:licen[cs]e|session|seed|encryption|anon|bot)$|^(?:anthropic|discord|github|gitlab|linear|notion|openai|sendgrid|sentry|slack|stripe|supabase|twilio)$`)
	vagueOptions  = []string{"-k", "-t", "-p"}
)

func mayNameSecret(within, key string) bool {
	switch within {
	case "env", "environment":
		return vagueVariable().MatchString(key)
	case "args":
		return slices.Contains(vagueOptions, key)
	}
	return false
}

var fileSuffix = lazyregexp.New(`(?i)[_-]file$`)

// namesSecretFile reports whether a name is that of a file with a secret in it. A value that
// does not look like a file name is treated as the secret.
func namesSecretFile(key string) bool {
	name := fileSuffix().ReplaceAllString(key, "")
	return name != key && Named(name)
}

// userOptions are options of curl and the like that precede NAME:PASSWORD.
var userOptions = []string{"-u", "--user", "-U", "--proxy-user"}

func hasOneOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
