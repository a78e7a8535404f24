package upstream

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// authorizationExtension returns the extension of the protocol that the login at a server uses (SEP-1046,
// SEP-990), "" if none.
func authorizationExtension(s schema.Server) string {
	switch {
	case s.Auth == nil:
		return ""
	case s.Auth.Grant == schema.GrantClientCredentials:
		return "io.modelcontextprotocol/oauth-client-credentials"
	case s.Auth.Grant == schema.GrantJWTBearer && s.Auth.IDP != "":
		return "io.modelcontextprotocol/enterprise-managed-authorization"
	}
	return ""
}

// withExtension adds the extension of a server's login to the capabilities that are declared to it.
func withExtension(capabilities json.RawMessage, s schema.Server) json.RawMessage {
	name := authorizationExtension(s)
	if name == "" {
		return capabilities
	}
	extensions := wire.Get(capabilities, "extensions")
	if !wire.IsObject(extensions) {
		extensions = []byte(`{}`)
	}
	return wire.Set(capabilities, "extensions", wire.Set(extensions, name, []byte(`{}`)))
}

// declareExtension adds the extension to a request of the stateless era, whose capabilities may be those
// of a host.
func declareExtension(params wire.Object, s schema.Server) wire.Object {
	meta := params.Get("_meta")
	capabilities := wire.Get(meta, transports.MetaCapabilities)
	if authorizationExtension(s) == "" || !wire.IsObject(capabilities) {
		return params
	}
	return params.Set("_meta", wire.Set(meta, transports.MetaCapabilities, withExtension(capabilities, s)))
}
