package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// What a host says of itself is refused or not passed to the SDK's session if it is large, in both
// eras and in every member. A host with large icons is served.
func TestWhatAHostSaysOfItselfIsBounded(t *testing.T) {
	long := func(kilobytes int) string { return strings.Repeat("x", kilobytes<<10) }
	info := func(member string) string { return `{"name":"a","version":"1"` + member + `}` }
	for name, tt := range map[string]struct {
		info, capabilities, version, more string
		refused                           bool
	}{
		"small":           {info: info(""), capabilities: `{"roots":{}}`},
		"name":            {info: `{"name":"` + long(1024) + `","version":"1"}`, capabilities: `{}`},
		"version":         {info: `{"name":"a","version":"` + long(1024) + `"}`, capabilities: `{}`},
		"title":           {info: info(`,"title":"` + long(1024) + `"`), capabilities: `{}`},
		"icons":           {info: info(`,"icons":[{"src":"data:image/png;base64,` + long(300) + `"}]`), capabilities: `{}`},
		"unknown":         {info: info(""), capabilities: `{}`, more: `,"other":"` + long(1024) + `"`},
		"capabilities":    {info: info(""), capabilities: `{"experimental":{"x":"` + long(60) + `"}}`},
		"experimental":    {info: info(""), capabilities: `{"experimental":{"x":"` + long(65) + `"}}`, refused: true},
		"protocolVersion": {info: info(""), capabilities: `{}`, version: long(64), refused: true},
	} {
		handshake := &Request{Method: "initialize", Params: fmt.Appendf(nil, `{"protocolVersion":"2025-06-18%s","capabilities":%s,"clientInfo":%s%s}`, tt.version, tt.capabilities, tt.info, tt.more)}
		meta := fmt.Appendf(nil, `{%q:"2026-07-28",%q:%s,%q:%s}`, transports.MetaVersion, transports.MetaCapabilities, tt.capabilities, transports.MetaClientInfo, tt.info)
		stateless := &Request{Method: "tools/list", Era: transports.Stateless, Meta: meta, Params: wire.Set([]byte(`{}`), "_meta", meta)}
		for _, r := range []*Request{handshake, stateless} {
			if tt.version+tt.more != "" && r == stateless {
				continue // a member of initialize
			}
			if problem := introductionProblem(r); (problem != nil) != tt.refused {
				t.Errorf("%s of %s: %v, want a refusal: %v", name, r.Method, problem, tt.refused)
			}
			passed := withoutLooks(r)
			if kept := len(passed) - len(tt.capabilities); !tt.refused && kept > 2*maxInfo {
				t.Errorf("%s of %s: the SDK gets %d bytes beside the capabilities", name, r.Method, kept)
			}
			if capabilities := wire.Get(passed, "capabilities"); r == handshake && string(capabilities) != tt.capabilities {
				t.Errorf("%s: the SDK does not get the capabilities", name)
			}
		}
	}
}
