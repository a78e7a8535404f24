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
	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// The checks in this file are for rules that the types of keys cannot express.

// checkServer checks an entry that was decoded.
func (r *report) checkServer(path string, n *syntax.Node, s *Server) {
	r.checkURL(syntax.Below(path, "url"), n.Get("url"))
	r.checkOpenAPI(path, n)
	r.checkHeaders(syntax.Below(path, "headers"), n.MembersOf("headers"))
	r.checkEnv(syntax.Below(path, "env"), n.MembersOf("env"))
	r.checkTools(path, n)
	r.literalSecrets(n)
	if s.Load == LoadLazy && s.Description == "" && !s.Disabled {
		r.warn(n.Get("load").At, syntax.Below(path, "load"), "a lazy server without a description", "write a description: until it is loaded, that is all the model knows of it")
	}
	r.checkCredentials(path, n, s)
	r.checkPlace(syntax.Below(path, "place"), n.Get("place"), s)
	r.checkAuth(syntax.Below(path, "auth"), n.Get("auth"))
	r.checkTLS(syntax.Below(path, "tls"), n.Get("tls"))
	for name := range s.Headers {
		if s.Auth != nil && strings.EqualFold(name, "Authorization") {
			r.warn(n.Get("auth").At, syntax.Below(path, "auth"), "headers has an Authorization too", "a request carries one of them; remove the other")
		}
	}
}

// checkPlace checks that the place of a server fits its transport and isolation.
func (r *report) checkPlace(path string, n *syntax.Node, s *Server) {
	switch {
	case s.Place == "" || s.Place == PlaceEach: // or it is invalid, which was reported
	case s.Transport != Stdio && s.Transport != "":
		r.fail(n.At, path, "a server with a url is not placed", "leave the key out: every replica reaches it by itself")
	case s.Place == PlaceOne && s.Isolation != IsolateNone:
		r.fail(n.At, path, fmt.Sprintf("one server for all does not go with isolation %q", s.Isolation), "leave one of the two keys out")
	case s.Place == PlacePrincipal && s.Isolation != IsolatePrincipal:
		r.fail(n.At, path, fmt.Sprintf("one server for each user does not go with isolation %q", s.Isolation), `write "isolation": "principal"`)
	}
}

// checkAuth checks which keys need each other. Their types were checked before.
func (r *report) checkAuth(path string, n *syntax.Node) {
	if n == nil {
		return
	}
	grant := n.Get("grant")
	is := func(name string) bool { return isKnownText(grant) && grant.Scalar == name }
	switch {
	case n.Has("client_secret") && !n.Has("client_id"):
		r.fail(n.At, path, "client_id is missing", `add the "client_id" that client_secret belongs to`)
	case is(GrantClientCredentials) && !(n.Has("client_id") && (n.Has("client_secret") || n.Has("private_key"))):
		r.fail(n.At, path, "client_credentials needs a client", `add "client_id" and "client_secret", or "private_key" in place of that`)
	case is(GrantJWTBearer) && !(n.Has("client_id") && n.Has("assertion_file")):
		r.fail(n.At, path, "jwt_bearer needs a client and the token of this workload", `add "client_id" and "assertion_file"`)
	case n.Has("private_key") && !is(GrantClientCredentials):
		r.fail(n.At, path, "private_key goes with client_credentials", `add "grant": "client_credentials"`)
	case n.Has("idp") != n.Has("idp_client_id") || n.Has("idp_client_secret") && !n.Has("idp"):
		r.fail(n.At, path, "an identity provider and a client there go together", `add "idp" and "idp_client_id"`)
	case n.Has("idp") && !is(GrantJWTBearer):
		r.fail(n.At, path, "idp goes with jwt_bearer", `add "grant": "jwt_bearer" and "assertion_file"`)
	case n.Has("callback") && n.Has("callback_port"):
		r.fail(n.Get("callback").At, syntax.Below(path, "callback"), "callback_port is given, too", "write the port into callback, and leave callback_port out")
	case n.Has("assertion_file") && !is(GrantJWTBearer):
		r.fail(n.At, path, "assertion_file goes with jwt_bearer", `add "grant": "jwt_bearer"`)
	}
	r.checkLogin(path, n)
}

func (r *report) checkTLS(path string, n *syntax.Node) {
	if n != nil && n.Has("cert") != n.Has("key") {
		r.fail(n.At, path, "a certificate and its key go together", `add "cert" and "key"`)
	}
}

// checkLogin checks the addresses that a login may use.
func (r *report) checkLogin(path string, n *syntax.Node) {
	if port := n.Get("callback_port"); port != nil {
		if number, err := strconv.Atoi(port.Scalar); err == nil && number > 65535 {
			r.fail(port.At, syntax.Below(path, "callback_port"), "there is no such port", "use one from 1024 to 65535")
		}
	}
	if callback := n.Get("callback"); isKnownText(callback) && !isCallback(callback.Scalar) {
		r.fail(callback.At, syntax.Below(path, "callback"), "this is not an address on this machine", "write it like http://localhost:3118/callback, with localhost, 127.0.0.1 or [::1]")
	}
	for i, network := range n.ItemsOf("allow_private") {
		if _, err := netip.ParsePrefix(network.Scalar); err != nil && isKnownText(network) {
			r.fail(network.At, syntax.Item(syntax.Below(path, "allow_private"), i), "this is not a network", "write it like 10.1.0.0/16")
		}
	}
}

// isCallback reports whether a browser comes back to this machine at an address.
func isCallback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// checkURL never shows the URL: people put keys into it.
func (r *report) checkURL(path string, n *syntax.Node) {
	if !isKnownText(n) {
		return
	}
	u, err := url.Parse(n.Scalar)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		r.fail(n.At, path, "this is not an http or https address", "write it like https://mcp.example.com/mcp")
		return
	}
	r.urlSecrets(u)
}

func (r *report) urlSecrets(u *url.URL) {
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

func (r *report) checkHeaders(path string, headers []syntax.Member) {
	seen := map[string]bool{}
	for _, m := range headers {
		inner := syntax.Below(path, m.Key)
		canonical := http.CanonicalHeaderKey(m.Key)
		switch {
		case !headerName().MatchString(m.Key):
			r.fail(m.At, inner, "invalid header name", "write it like X-Api-Key")
		case seen[canonical]:
			r.fail(m.At, inner, "duplicate header", "case makes no difference; remove one of them")
		case isKnownText(m.Value) && strings.ContainsAny(m.Value.Scalar, "\r\n\x00"):
			r.fail(m.Value.At, inner, "this has a line break in it", "headers are one line; does the variable end in a newline?")
		}
		seen[canonical] = true
		if _, credential, ok := strings.Cut(m.Value.Scalar, " "); ok && canonical == "Authorization" && isKnownText(m.Value) {
			r.secret(credential)
		}
	}
}

func (r *report) checkEnv(path string, variables []syntax.Member) {
	for _, m := range variables {
		inner := syntax.Below(path, m.Key)
		switch {
		case m.Key == "" || strings.ContainsAny(m.Key, "=\x00"):
			r.fail(m.At, inner, "invalid variable name", "names are not empty and have no = in them")
		case isKnownText(m.Value) && strings.Contains(m.Value.Scalar, "\x00"):
			r.fail(m.Value.At, inner, "this has a NUL in it", "no variable of a process can have one")
		}
	}
}

// literalSecrets records the possible secrets that an entry has in plain text.
func (r *report) literalSecrets(n *syntax.Node) {
	for _, part := range []string{"command", "args", "env", "url", "headers", "auth"} {
		inner := n.Get(part)
		if inner == nil {
			continue
		}
		mask.Walk("", part, inner, func(within, key string, n *syntax.Node) {
			if !isKnownText(n) || n.Expanded && !(within == "env" && secrets.Named(key)) {
				return
			}
			for _, found := range secrets.Find(within, key, n.Scalar) {
				r.secret(n.Scalar[found.From:found.To])
				if within == "env" {
					r.secret(n.Scalar)
				}
			}
		})
	}
}

// checkTools checks the keys for tools that servers and sources of the tree have in common.
func (r *report) checkTools(path string, n *syntax.Node) {
	filter, aliases := syntax.Below(path, "tool_filter"), syntax.Below(path, "path_aliases")
	for i, item := range n.ItemsOf("tool_filter") {
		r.checkPattern(syntax.Item(filter, i), item, toolglob.Check)
	}
	taken := map[string]string{}
	for _, m := range n.MembersOf("path_aliases") {
		r.checkAlias(syntax.Below(aliases, m.Key), m, taken)
	}
}

func (r *report) checkPattern(path string, n *syntax.Node, check func(pattern string) (what, hint string)) {
	if isKnownText(n) {
		if what, hint := check(n.Scalar); what != "" {
			r.fail(n.At, path, what, hint)
		}
	}
}

func (r *report) checkAlias(path string, m syntax.Member, taken map[string]string) {
	if !isKnownText(m.Value) {
		return
	}
	alias := m.Value.Scalar
	switch first, twice := taken[alias]; {
	case strings.TrimSpace(alias) == "" || strings.ContainsAny(alias, "/ \t\r\n"):
		r.fail(m.Value.At, path, "invalid tool name", "write one word without a slash")
	case twice:
		r.fail(m.Value.At, path, fmt.Sprintf("%q and %q would have the same name", first, m.Key), "give one of them another")
	default:
		taken[alias] = m.Key
	}
}

func (r *report) checkGateway(n *syntax.Node) {
	r.checkListen("gateway.listen", n.Get("listen"))
	r.checkListen("gateway.debug_listen", n.Get("debug_listen"))
	r.checkURL("gateway.public_url", n.Get("public_url"))
	for i, item := range n.ItemsOf("allowed_origins") {
		r.checkOrigin(syntax.Item("gateway.allowed_origins", i), item)
	}
	for i, item := range n.ItemsOf("allowed_hosts") {
		r.checkHost(syntax.Item("gateway.allowed_hosts", i), item)
	}
}

func (r *report) checkListen(path string, n *syntax.Node) {
	if !isKnownText(n) {
		return
	}
	_, port, err := net.SplitHostPort(n.Scalar)
	if number, portErr := strconv.Atoi(port); err != nil || portErr != nil || number < 0 || number > 65535 {
		r.fail(n.At, path, "invalid listen address", "write it like 127.0.0.1:8080")
	}
}

func (r *report) checkHost(path string, n *syntax.Node) {
	if isKnownText(n) && (strings.TrimSpace(n.Scalar) == "" || strings.ContainsAny(n.Scalar, "/ ")) {
		r.fail(n.At, path, "invalid host name", "write it like mcp.example.com, without https://")
	}
}

func (r *report) checkOrigin(path string, n *syntax.Node) {
	if !isKnownText(n) {
		return
	}
	u, err := url.Parse(n.Scalar)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != n.Scalar {
		r.fail(n.At, path, "this is not an origin", "write it like https://app.example.com, without a path")
	}
}
