package upstream

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dynmcp/dynmcp/schema"
)

// The extension that a login uses is declared, besides what the host declares, in both eras; no other
// server is told of it.
func TestExtensionOfALogin(t *testing.T) {
	const machine, company = `"io.modelcontextprotocol/oauth-client-credentials":{}`, `"io.modelcontextprotocol/enterprise-managed-authorization":{}`
	for name, test := range map[string]struct {
		auth *schema.Auth
		want string
	}{
		"none":        {nil, ""},
		"a person":    {&schema.Auth{ClientID: "x"}, ""},
		"a machine":   {&schema.Auth{Grant: schema.GrantClientCredentials}, machine},
		"a workload":  {&schema.Auth{Grant: schema.GrantJWTBearer, AssertionFile: "token"}, ""},
		"the company": {&schema.Auth{Grant: schema.GrantJWTBearer, AssertionFile: "token", IDP: "https://idp.example.test"}, company},
	} {
		for _, era := range []string{"initialize", "server/discover"} {
			t.Run(name+" "+era, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					answers := map[string]string{"initialize": speaksOld, "server/discover": speaksNew}
					c, p := inMemory(t, schema.Server{Auth: test.auth}, ConnOptions{HandshakeOnly: era == "initialize"}, greeting(answers))
					if err := c.Handshake(t.Context(), json.RawMessage(`{"extensions":{"x/host":{}}}`)); err != nil {
						t.Fatal(err)
					}
					if era == "server/discover" { // with the capabilities of the host
						go c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"x","_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"x/host":{}}}}}`))
					}
					synctest.Wait()
					lines := p.lines()
					for i, line := range []string{lines[0], lines[len(lines)-1]} {
						if era == "initialize" && i == 1 {
							continue // notifications/initialized
						}
						if !strings.Contains(line, test.want) || test.want == "" && strings.Contains(line, "modelcontextprotocol/oauth") || strings.Contains(line, "enterprise") != (test.want == company) {
							t.Errorf("got %s, want %s in it", line, test.want)
						}
						if (era == "initialize" || i == 1) && !strings.Contains(line, `"x/host":{}`) {
							t.Errorf("what the host declares is lost: %s", line)
						}
					}
				})
			})
		}
	}
}
