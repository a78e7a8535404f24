package callheader

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A tool's schema and a call's arguments can set no other headers than those for arguments.
func TestStatelessHeaderInjection(t *testing.T) {
	for _, test := range []struct {
		property, arguments string
		want                string // the headers for arguments
	}{
		{`"r":{"x-mcp-header":"Region"}`, `{"r":"a\r\nAuthorization: x"}`, "map[Mcp-Param-Region:[=?base64?YQ0KQXV0aG9yaXphdGlvbjogeA==?=]]"},
		{`"r":{"x-mcp-header":"Region\r\nAuthorization: x"}`, `{"r":"a"}`, "map[]"},
		{`"r":{"x-mcp-header":"Region: x"}`, `{"r":"a"}`, "map[]"},
		{`"r":{"x-mcp-header":""}`, `{"r":"a"}`, "map[]"},
		{`"r":{"x-mcp-header":7}`, `{"r":"a"}`, "map[]"},
		{`"r":{"x-mcp-header":"Région"}`, `{"r":"a"}`, "map[]"},
		{`"r":{"x-mcp-header":"Authorization"},"h":{"x-mcp-header":"Host"}`, `{"r":"a","h":"b"}`, "map[Mcp-Param-Authorization:[a] Mcp-Param-Host:[b]]"},
		{`"r":{"x-mcp-header":"Region"},"s":{"x-mcp-header":"region"},"t":{"x-mcp-header":"T"}`, `{"r":"a","s":"b","t":"c"}`, "map[Mcp-Param-T:[c]]"},
		{`"r":{"type":"array","items":{"type":"object","properties":{"x":{"x-mcp-header":"Region"}}}}`, `{"r":[{"x":"a"}]}`, "map[]"},
		{`"r":{"x-mcp-header":"Region"}`, `{"r":1.5}`, "map[]"},
		{`"r":{"x-mcp-header":"Region"}`, `{"r":9007199254740993000}`, "map[]"},
		{`"r":{"x-mcp-header":"Region"}`, `{"r":{"a":1}}`, "map[]"},
		{`"r":{"x-mcp-header":"Region"}`, `{"r":null}`, "map[]"},
		{`"r":{"x-mcp-header":"Region"}`, `{"r":true}`, "map[Mcp-Param-Region:[true]]"},
	} {
		bindings := Of([]json.RawMessage{fmt.Appendf(nil, `{"name":"x","inputSchema":{"properties":{%s}}}`, test.property)})
		header := http.Header{}
		bindings.Set(header, "tools/call", wire.Object{Text: fmt.Appendf(nil, `{"name":"x","arguments":%s}`, test.arguments)})
		header.Del("Mcp-Method")
		header.Del("Mcp-Name")
		if got := fmt.Sprint(header); got != test.want {
			t.Errorf("%s with %s: got %s, want %s", test.property, test.arguments, got, test.want)
		}
	}
}
