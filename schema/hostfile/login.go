package hostfile

import (
	"net/url"
	"slices"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// auth adds Cursor's auth, and dynmcp's own as it is.
func (e *entry) auth(m syntax.Member) {
	switch {
	case m.Value.Kind == syntax.Object && m.Value.Has("CLIENT_ID"):
		e.login(m, m.Value.Members)
	case m.Value.Kind == syntax.Text: // Hermes and others say only that there is a login
		if m.Value.Scalar != "oauth" && m.Value.Scalar != "none" {
			e.add(m, "auth", m.Value)
		}
	default:
		e.add(m, "auth", m.Value)
	}
}

// oauth adds what hosts say of a login.
func (e *entry) oauth(m syntax.Member) {
	switch {
	case isEmpty(m.Value) || m.Value.Kind == syntax.Boolean:
	case e.in.Has("auth") || m.Value.Kind != syntax.Object && m.Value.Kind != syntax.List:
		e.notRead(m, "what a login needs is written in auth")
	case m.Value.Kind == syntax.List: // of Codex
		e.login(m, []syntax.Member{m})
	default:
		e.login(m, m.Value.Members)
	}
}

// login adds what the member m says of a login to auth.
func (e *entry) login(m syntax.Member, parts []syntax.Member) {
	i := slices.IndexFunc(e.out.Members, func(o syntax.Member) bool { return o.Key == "auth" })
	auth := syntax.Node{Kind: syntax.Object, At: m.Value.At}
	if i >= 0 {
		auth = *e.out.Members[i].Value
	}
	for _, part := range parts {
		path := syntax.Below(e.path, m.Key)
		if part.Key != m.Key {
			path = syntax.Below(path, part.Key)
		}
		key, v := loginKeys[part.Key], part.Value
		if key == "scope" && v.Kind == syntax.List {
			v = joined(v)
		}
		switch {
		case isEmpty(v) || part.Key == "enabled" || auth.Has(key):
		case key == "callback" && !isCallback(v.Scalar):
			e.Warn(part.At, path, "this is not read", "a login comes back to this machine: register the client with http://localhost:PORT/callback, and write that as callback into auth")
		case key != "" || m.Key == "auth":
			if key != "" && key != part.Key {
				part.Key, part.Written = key, part.Key
			}
			part.Value = v
			auth.Members = append(auth.Members, part)
		default:
			e.Warn(part.At, path, "this is not read", atServer)
		}
	}
	if auth.Has("callback") { // with its port
		auth.Members = slices.DeleteFunc(auth.Members, func(o syntax.Member) bool { return o.Key == "callback_port" })
	}
	switch {
	case i >= 0:
		e.out.Members[i].Value = &auth
	case len(auth.Members) > 0:
		e.add(m, "auth", &auth)
	}
}

// isCallback reports whether a browser comes back to this machine at an address.
func isCallback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
