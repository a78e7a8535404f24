// Package secrets finds possible secrets in the strings of configs: by the names of options,
// variables and headers (names.go), by the form of a text (find.go), and by the randomness of a
// word (random.go).
package secrets

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// A Secret is a part of a text that may be a secret.
type Secret struct {
	// From and To are its beginning and end in the text, in bytes.
	From, To int
	// Name is the option, variable, header or URL parameter whose value it is, empty if there is
	// none.
	Name string
}

// Find returns the possible secrets in a string of a config, in order. within is the key of the
// object or list that holds the string, such as args, env or headers; key is its own or, in a
// list, the option before it.
//
// It prefers to find too much: findings are shown as *** or replaced with a variable, which breaks
// nothing. A reference to a variable is not a secret.
func Find(within, key, value string) []Secret {
	f := finder{text: value}
	switch {
	case slices.Contains(HeaderMaps, within):
		f.header(key, 0, len(value))
	case (within == "args" || within == "command") && (key == "env" || isHeaderOption(key)):
		f.assigned(value, isHeaderOption(key))
	case within == "args" && slices.Contains(userOptions, key):
		f.user(0, len(value))
	case Named(key), mayNameSecret(within, key) && looksOpaque(value), namesSecretFile(key) && !strings.ContainsAny(value, `/\.~ `):
		f.add(key, 0, len(value))
	}
	f.scan()
	slices.SortFunc(f.found, func(a, b Secret) int { return a.From - b.From })
	return f.found
}

// HeaderMaps are keys of objects whose members are headers of requests.
var HeaderMaps = []string{"headers", "http_headers", "requestInit"}

// headerName matches a token of RFC 9110.
var headerName = lazyregexp.New("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// plainHeaders are headers without secrets.
var plainHeaders = lazyregexp.New(`(?i)^(?:accept(?:-.*)?|content-type|user-agent|cache-control|connection|host|origin|referer|(?:x-)?mcp-.*|.*-version)$`)

func isHeaderOption(key string) bool {
	return key == "-H" || strings.EqualFold(strings.TrimLeft(key, "-"), "header") || strings.EqualFold(strings.TrimLeft(key, "-"), "headers")
}

// plainValues are never secrets, whatever their names; plainFile matches the names of files.
var (
	plainValues = []string{"true", "false", "yes", "no", "on", "off", "none", "null", "auto", "default", "basic", "bearer", "oauth", "oauth2", "apikey", "api_key", "api-key", "token"}
	plainFile   = lazyregexp.New(`(?i)^[~./\\\w: -]*\.(?:json|pem|key|p12|pfx|crt|cer|txt|ya?ml|toml|env|conf|ini)$`)
)

// Forms in which programs and people write secrets into texts.
const (
	secretWord  = `[\w.-]*(?:key|token|secret|passw|passphrase|passwd|pwd|credential|auth|cookie|signature)[\w.-]*`
	secretValue = `("[^"]*"|'[^']*'|[^\s"';&|,]+)`
)

var (
	// optionInText and its like name the secret in group 1 and hold it in group 2.
	optionInText     = lazyregexp.New(`(?i)(?:^|[\s"'(;&|])(-{1,2}` + secretWord + `)(?:=|\s+)` + secretValue)
	assignmentInText = lazyregexp.New(`(?i)(` + secretWord + `)=` + secretValue)
	partAssigned     = lazyregexp.New(`(?i)(?:^|[^\w-])((?:\w+_)?(?:` + strings.Join(secretParts, "|") + `)(?:_\w+)?)=` + secretValue)
	userInText       = lazyregexp.New(`(?:^|[\s"'])(?:-u|-U|--user|--proxy-user)[\s=]*["']?([^\s"':]+:[^\s"']+)`)
	headerInText     = lazyregexp.New(`(?i)(?:^|[\s"'])(` + secretWord + `)\s*:\s*((?:(?:bearer|basic|token)\s+)?[^\s"',;{}]+)`)
	memberInText     = lazyregexp.New(`(?i)\\*["'](` + secretWord + `)\\*["']\s*:\s*\\*["']([^"'\\]*)`)
	schemeInText     = lazyregexp.New(`(?i)\b(bearer|basic)\s+([\w.+/=~-]{6,})`)
	urlInText        = lazyregexp.New(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]+`)
	reference        = lazyregexp.New(`\$\{[^}]*\}`)
)

// wordsOfForms are words of which every match of the forms contains one.
var wordsOfForms = []string{"key", "token", "secret", "pass", "pwd", "credential", "auth", "cookie", "signature", "bearer", "basic"}

// tokenPrefixes are the distinctive prefixes of services' tokens; longTokenPrefixes also begin other
// words, and count only before a long run of letters and digits.
var (
	tokenPrefixes = []string{"ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_", "rk_live_", "pk_live_", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xapp-",
		"AKIA", "ASIA", "AIza", "ya29.", "sbp_", "SG.", "figd_", "ntn_", "tvly-", "pplx-", "lin_api_", "sntrys_", "sntryu_", "dop_v1_", "shpat_", "shpss_", "gsk_", "xai-", "whsec_", "apify_api_", "nvapi-", "ATATT", "PMAK-", "eyJ"}
	longTokenPrefixes = []string{"npm_", "hf_", "r8_", "secret_"}
)

// A finder collects the secrets of a text.
type finder struct {
	text  string
	found []Secret
}

// add records a secret, without its quotes and scheme, unless it is a reference, is never secret, or
// overlaps an earlier finding.
func (f *finder) add(name string, from, to int) {
	value := f.text[from:to]
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		from, to = from+1, to-1
		value = f.text[from:to]
	}
	trimmed := strings.TrimLeft(value, " ")
	from, value = from+len(value)-len(trimmed), trimmed
	if scheme, rest, ok := strings.Cut(value, " "); ok && slices.Contains([]string{"bearer", "basic", "token", "apikey"}, strings.ToLower(scheme)) {
		value = strings.TrimLeft(rest, " ")
		from = to - len(value)
	}
	switch {
	case value == "" || value[0] == '$' || strings.HasPrefix(value, "{env:") || reference().MatchString(value):
		return
	case slices.Contains(plainValues, strings.ToLower(value)) || plainFile().MatchString(value):
		return
	}
	if slices.ContainsFunc(f.found, func(s Secret) bool { return from < s.To && s.From < to }) {
		return
	}
	f.found = append(f.found, Secret{from, to, strings.TrimLeft(name, "-")})
}

// header records the value of a header.
func (f *finder) header(name string, from, to int) {
	if !plainHeaders().MatchString(name) {
		f.add(name, from, to)
	}
}

// assigned records the value of "NAME=value", or of "Name: value" in a header.
func (f *finder) assigned(text string, header bool) {
	separator := "="
	if header {
		separator = ":"
	}
	name, value, ok := strings.Cut(text, separator)
	if name = strings.TrimSpace(name); !ok || !headerName().MatchString(name) {
		return
	}
	switch {
	case header:
		f.header(name, len(text)-len(value), len(text))
	case Named(name), mayNameSecret("env", name) && looksOpaque(value):
		f.add(name, len(text)-len(value), len(text))
	}
}

// user records the password of NAME:PASSWORD, unless both are ids of a user and a group, as in
// options of container programs.
func (f *finder) user(from, to int) {
	name, password, _ := strings.Cut(f.text[from:to], ":")
	if _, notNumber := strconv.Atoi(password); notNumber != nil && password != name {
		f.add("password", to-len(password), to)
	}
}

// scan looks for secrets with a recognisable form.
func (f *finder) scan() {
	if word, rest, ok := strings.Cut(f.text, "="); ok && isHeaderOption(word) {
		name, value, _ := strings.Cut(rest, ":")
		f.header(strings.TrimSpace(name), len(f.text)-len(value), len(f.text))
	}
	if name, value, ok := strings.Cut(f.text, "="); ok && name != "" && name[0] == '-' && !strings.ContainsAny(name, " \t\n") && Named(name) {
		f.add(name, len(f.text)-len(value), len(f.text))
	}
	if strings.Contains(f.text, "://") {
		for _, at := range urlInText().FindAllStringIndex(f.text, -1) {
			f.url(at[0], at[1])
		}
	}
	if strings.Contains(f.text, "curl") {
		for _, at := range userInText().FindAllStringSubmatchIndex(f.text, -1) {
			f.user(at[2], at[3])
		}
	}
	if strings.Contains(f.text, "=") {
		for _, at := range partAssigned().FindAllStringSubmatchIndex(f.text, -1) {
			if name := f.text[at[2]:at[3]]; Named(name) {
				f.add(name, at[4], at[5])
			}
		}
	}
	if hasOneOf(strings.ToLower(f.text), wordsOfForms) { // most texts have none, and patterns are slow
		for _, form := range []*regexp.Regexp{memberInText(), optionInText(), assignmentInText(), headerInText()} {
			for _, at := range form.FindAllStringSubmatchIndex(f.text, -1) {
				if name := f.text[at[2]:at[3]]; Named(name) {
					f.add(name, at[4], at[5])
				}
			}
		}
		for _, at := range schemeInText().FindAllStringSubmatchIndex(f.text, -1) {
			f.add("", at[4], at[5])
		}
	}
	f.tokens()
	word := f.text[strings.LastIndexByte(f.text, '=')+1:]
	if looksRandom(word, 20) {
		f.add("", len(f.text)-len(word), len(f.text))
	}
}

// tokens records tokens with the prefix of a service, and private keys.
func (f *finder) tokens() {
	if at := strings.Index(f.text, "-----BEGIN "); at >= 0 {
		f.add("", at, len(f.text))
	}
	for i := 0; i < len(f.text); i++ {
		if i > 0 && isWordByte(f.text[i-1]) || !isWordByte(f.text[i]) {
			continue
		}
		end := i
		for end < len(f.text) && (isWordByte(f.text[end]) || strings.IndexByte(".+/=~-", f.text[end]) >= 0) {
			end++
		}
		begins := func(least int) func(string) bool {
			return func(prefix string) bool {
				return strings.HasPrefix(f.text[i:end], prefix) && end-i >= len(prefix)+least
			}
		}
		if slices.ContainsFunc(tokenPrefixes, begins(6)) || slices.ContainsFunc(longTokenPrefixes, begins(16)) {
			f.add("", i, end)
		}
	}
}

// plainParameters are documented URL parameters of servers that are not secret.
var plainParameters = []string{"tools", "toolsets", "features", "version", "format", "mode", "region", "lang", "language", "transport", "read_only", "readonly", "sslmode"}

// url records the password of a URL, its parameters and the random parts of its path: such a part often
// identifies a user of a remote server.
func (f *finder) url(from, to int) {
	rest := strings.Index(f.text[from:to], "://") + 3 + from
	end := to
	if i := strings.IndexAny(f.text[rest:to], "/?#"); i >= 0 {
		end = rest + i
	}
	if at := strings.LastIndexByte(f.text[rest:end], '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(f.text[rest:rest+at], ":")
		if hasPassword {
			f.add("password", rest+len(user)+1, rest+at)
		} else if looksRandom(user, 12) {
			f.add("token", rest, rest+at)
		}
	}
	path := to
	if i := strings.IndexAny(f.text[end:to], "?#"); i >= 0 {
		path = end + i
	}
	// The last part of the address of a webhook is its key.
	webhook := strings.HasPrefix(f.text[rest:], "hooks.") || strings.Contains(f.text[rest:path], "webhook")
	for i := end; i < path; {
		next := path
		if j := strings.IndexByte(f.text[i+1:path], '/'); j >= 0 {
			next = i + 1 + j
		}
		if looksRandom(f.text[i+1:next], 16) || webhook && next == path && next-i > 8 {
			f.add("token", i+1, next)
		}
		i = next
	}
	for i := path; i < to; {
		next := to
		if j := strings.IndexAny(f.text[i+1:to], "&#"); j >= 0 {
			next = i + 1 + j
		}
		name, value, ok := strings.Cut(f.text[i+1:next], "=")
		_, notNumber := strconv.ParseFloat(value, 64)
		if ok && (Named(name) || notNumber != nil && !slices.Contains(plainParameters, strings.ToLower(name))) {
			f.add(name, next-len(value), next)
		}
		i = next
	}
}

// Option returns the key for Find with the argument after this one: the argument itself if it is
// an option without a value, "" otherwise. -e and --env precede the assignment of a variable,
// and their key is env.
func Option(word string) string {
	switch {
	case word == "-e" || word == "--env":
		return "env"
	case strings.HasPrefix(word, "-") && !strings.ContainsAny(word, "= \t\n"):
		return word
	}
	return ""
}

// Hide returns a text with its secrets replaced with mark.
func Hide(text string, secrets []Secret, mark string) string {
	var b strings.Builder
	shown := 0
	for _, s := range secrets {
		b.WriteString(text[shown:s.From] + mark)
		shown = s.To
	}
	return b.String() + text[shown:]
}
