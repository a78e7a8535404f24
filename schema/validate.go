package schema

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/secrets"
)

// checks are those of values that the types of keys cannot express. They know a node and
// the report.
type checks struct{ *report }

// checkServer checks an entry that was decoded.
func (r checks) checkServer(path string, n *node, s *Server) {
	r.checkURL(below(path, "url"), n.get("url"))
	r.checkHeaders(below(path, "headers"), n.membersOf("headers"))
	r.checkEnv(below(path, "env"), n.membersOf("env"))
	r.checkTools(path, n)
	r.checkSandbox(below(path, "sandbox"), n.get("sandbox"))
	r.literalSecrets(n)
	if s.Load == LoadLazy && s.Description == "" && !s.Disabled {
		r.warn(n.get("load").at, below(path, "load"), "a lazy server without a description", "write a description: until it is loaded, that is all the model knows of it")
	}
	r.checkPlace(below(path, "place"), n.get("place"), s)
	r.checkAuth(below(path, "auth"), n.get("auth"))
	for name := range s.Headers {
		if s.Auth != nil && strings.EqualFold(name, "Authorization") {
			r.warn(n.get("auth").at, below(path, "auth"), "headers has an Authorization too", "a request carries one of them; remove the other")
		}
	}
}

// checkSandbox checks the hosts of a sandbox.
func (r checks) checkSandbox(path string, n *node) {
	if n == nil || n.kind != object {
		return
	}
	for i, host := range n.itemsOf("network") {
		if !isKnownText(host) {
			continue
		}
		if err := sandbox.CheckHosts([]string{host.scalar}); err != nil {
			r.fail(host.at, at(below(path, "network"), i), "this is no host", "write a name, *.name, an address or a network, and a port where it is not 80 or 443")
		}
	}
}

// checkPlace checks that where a server runs fits what it is and who shares it.
func (r checks) checkPlace(path string, n *node, s *Server) {
	switch {
	case s.Place == "" || s.Place == PlaceEach: // or it is not known, which was said
	case s.Transport != Stdio && s.Transport != "":
		r.fail(n.at, path, "a server with a url is not placed", "leave the key out: every replica reaches it by itself")
	case s.Place == PlaceOne && s.Isolation != IsolateNone:
		r.fail(n.at, path, fmt.Sprintf("one server for all does not go with isolation %q", s.Isolation), "leave one of the two keys out")
	case s.Place == PlacePrincipal && s.Isolation != IsolatePrincipal:
		r.fail(n.at, path, fmt.Sprintf("one server for each user does not go with isolation %q", s.Isolation), `write "isolation": "principal"`)
	}
}

// checkAuth checks what belongs together. Whether the entry is an object was
// checked before.
func (r checks) checkAuth(path string, n *node) {
	if n == nil {
		return
	}
	grant := n.get("grant")
	is := func(name string) bool { return isKnownText(grant) && grant.scalar == name }
	switch {
	case n.has("client_secret") && !n.has("client_id"):
		r.fail(n.at, path, "client_id is missing", `add the "client_id" that client_secret belongs to`)
	case is(GrantClientCredentials) && !(n.has("client_id") && (n.has("client_secret") || n.has("private_key"))):
		r.fail(n.at, path, "client_credentials needs a client", `add "client_id" and "client_secret", or "private_key" in place of that`)
	case is(GrantJWTBearer) && !(n.has("client_id") && n.has("assertion_file")):
		r.fail(n.at, path, "jwt_bearer needs a client and the token of this workload", `add "client_id" and "assertion_file"`)
	case n.has("private_key") && !is(GrantClientCredentials):
		r.fail(n.at, path, "private_key goes with client_credentials", `add "grant": "client_credentials"`)
	case n.has("idp") != n.has("idp_client_id") || n.has("idp_client_secret") && !n.has("idp"):
		r.fail(n.at, path, "an identity provider and a client there go together", `add "idp" and "idp_client_id"`)
	case n.has("idp") && !is(GrantJWTBearer):
		r.fail(n.at, path, "idp goes with jwt_bearer", `add "grant": "jwt_bearer" and "assertion_file"`)
	case n.has("assertion_file") && !is(GrantJWTBearer):
		r.fail(n.at, path, "assertion_file goes with jwt_bearer", `add "grant": "jwt_bearer"`)
	}
	if port := n.get("callback_port"); port != nil && port.scalar != "" {
		if number, err := strconv.Atoi(port.scalar); err == nil && number > 65535 {
			r.fail(port.at, below(path, "callback_port"), "there is no such port", "use one from 1024 to 65535")
		}
	}
	if networks := n.get("allow_private"); networks != nil {
		for i, network := range networks.items {
			if !isKnownText(network) {
				continue
			}
			if _, err := netip.ParsePrefix(network.scalar); err != nil {
				r.fail(network.at, fmt.Sprintf("%s[%d]", below(path, "allow_private"), i), "this is not a network", "write it like 10.1.0.0/16")
			}
		}
	}
}

// checkURL never shows the URL: people put keys into it.
func (r checks) checkURL(path string, n *node) {
	if !isKnownText(n) {
		return
	}
	u, err := url.Parse(n.scalar)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		r.fail(n.at, path, "this is not an http or https address", "write it like https://mcp.example.com/mcp")
		return
	}
	r.urlSecrets(u)
}

func (r checks) urlSecrets(u *url.URL) {
	password, _ := u.User.Password()
	r.secret(password)
	for _, values := range u.Query() {
		for _, value := range values {
			r.secret(value)
		}
	}
}

// headerName matches a token of RFC 9110.
var headerName = lazyregexp.New("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (r checks) checkHeaders(path string, headers []member) {
	seen := map[string]bool{}
	for _, m := range headers {
		inner := below(path, m.key)
		canonical := http.CanonicalHeaderKey(m.key)
		switch {
		case !headerName().MatchString(m.key):
			r.fail(m.at, inner, "invalid header name", "write it like X-Api-Key")
		case seen[canonical]:
			r.fail(m.at, inner, "duplicate header", "case makes no difference; remove one of them")
		case isKnownText(m.value) && strings.ContainsAny(m.value.scalar, "\r\n\x00"):
			r.fail(m.value.at, inner, "this has a line break in it", "headers are one line; does the variable end in a newline?")
		}
		seen[canonical] = true
		if _, credential, ok := strings.Cut(m.value.scalar, " "); ok && canonical == "Authorization" && isKnownText(m.value) {
			r.secret(credential)
		}
	}
}

func (r checks) checkEnv(path string, variables []member) {
	for _, m := range variables {
		inner := below(path, m.key)
		switch {
		case m.key == "" || strings.ContainsAny(m.key, "=\x00"):
			r.fail(m.at, inner, "invalid variable name", "names are not empty and have no = in them")
		case isKnownText(m.value) && strings.Contains(m.value.scalar, "\x00"):
			r.fail(m.value.at, inner, "this has a NUL in it", "no process can be given that")
		}
	}
}

// literalSecrets records what an entry has in plain text that may be a secret.
func (r checks) literalSecrets(n *node) {
	for _, part := range []string{"command", "args", "env", "url", "headers", "auth"} {
		inner := n.get(part)
		if inner == nil {
			continue
		}
		walk("", part, inner, func(within, key string, n *node) {
			if !isKnownText(n) || n.expanded && !(within == "env" && secrets.Named(key)) {
				return
			}
			for _, found := range secrets.Find(within, key, n.scalar) {
				r.secret(n.scalar[found.From:found.To])
				if within == "env" {
					r.secret(n.scalar)
				}
			}
		})
	}
}

// checkTools checks the keys for tools that servers and sources of the tree share.
func (r checks) checkTools(path string, n *node) {
	filter, aliases := below(path, "tool_filter"), below(path, "path_aliases")
	for i, item := range n.itemsOf("tool_filter") {
		r.checkGlob(at(filter, i), item)
	}
	taken := map[string]string{}
	for _, m := range n.membersOf("path_aliases") {
		r.checkAlias(below(aliases, m.key), m, taken)
	}
}

func (r checks) checkGlob(path string, n *node) {
	if !isKnownText(n) {
		return
	}
	pattern := strings.TrimPrefix(n.scalar, "!")
	if isBlank(pattern) {
		r.fail(n.at, path, "this pattern is empty", "write a tool name, with * for any letters")
	} else if strings.HasPrefix(pattern, "@") {
		if !slices.Contains(ToolClasses, pattern) {
			r.fail(n.at, path, "there is no such class of tools", `want @readonly, @write or @destructive; write \@ before a name that begins so`)
		}
	} else if _, err := CompileGlob(pattern); err != nil {
		r.fail(n.at, path, "this is not a glob: "+err.Error(), `write \ before a character that is to stand for itself`)
	}
}

func (r checks) checkAlias(path string, m member, taken map[string]string) {
	if !isKnownText(m.value) {
		return
	}
	alias := m.value.scalar
	switch first, twice := taken[alias]; {
	case isBlank(alias) || strings.ContainsAny(alias, "/ \t\r\n"):
		r.fail(m.value.at, path, "invalid tool name", "write one word without a slash")
	case twice:
		r.fail(m.value.at, path, fmt.Sprintf("%q and %q would have the same name", first, m.key), "give one of them another")
	default:
		taken[alias] = m.key
	}
}

func (r checks) checkGateway(n *node) {
	r.checkListen("gateway.listen", n.get("listen"))
	r.checkListen("gateway.debug_listen", n.get("debug_listen"))
	for i, item := range n.itemsOf("allowed_origins") {
		r.checkOrigin(at("gateway.allowed_origins", i), item)
	}
	for i, item := range n.itemsOf("allowed_hosts") {
		r.checkHost(at("gateway.allowed_hosts", i), item)
	}
}

func (r checks) checkListen(path string, n *node) {
	if !isKnownText(n) {
		return
	}
	_, port, err := net.SplitHostPort(n.scalar)
	if number, portErr := strconv.Atoi(port); err != nil || portErr != nil || number < 0 || number > 65535 {
		r.fail(n.at, path, "invalid listen address", "write it like 127.0.0.1:8080")
	}
}

func (r checks) checkHost(path string, n *node) {
	if isKnownText(n) && (isBlank(n.scalar) || strings.ContainsAny(n.scalar, "/ ")) {
		r.fail(n.at, path, "invalid host name", "write it like mcp.example.com, without https://")
	}
}

func (r checks) checkOrigin(path string, n *node) {
	if !isKnownText(n) {
		return
	}
	u, err := url.Parse(n.scalar)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != n.scalar {
		r.fail(n.at, path, "this is not an origin", "write it like https://app.example.com, without a path")
	}
}
