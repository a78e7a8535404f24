package aggregator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A reference that an upstream may read differently is refused.
func TestAmbiguousReferenceIsRefused(t *testing.T) {
	t.Parallel()
	onStage(t, `-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"prompts":{},"resources":{},"completions":{}}
-- upstream prompts/list --
{"prompts":[{"name":"a"}]}
-- upstream resources/templates/list --
{"resourceTemplates":[{"uriTemplate":"x://{id}","name":"t"}]}
`, func(t *testing.T, st *stage) {
		host, up := st.hosts[0], st.upstreams[0]
		for n, test := range []struct {
			params  string
			refused bool
		}{
			{`"ref":{"type":"ref/prompt","name":"a"}`, false},
			{`"ref":{"type":"ref/resource","uri":"x://{id}"}`, false},
			{`"ref":{"type":"ref/prompt","name":"b","name":"a"}`, true},
			{`"ref":{"type":"ref/prompt","name":"a","Name":"b"}`, true},
			{`"ref":{"type":"ref/resource","type":"ref/prompt","name":"a"}`, true},
			{`"ref":{"type":"ref/resource","uri":"x://{id}","u\u0072i":"y"}`, true},
			{`"ref":{"type":"ref/resource","uri":"x://{id}","URI":"y"}`, true},
			{`"ref":{"type":"ref/prompt","name":"b"},"ref":{"type":"ref/prompt","name":"a"}`, true},
			{`"ref":{"type":"ref/prompt","name":"a"},"Ref":{"type":"ref/prompt","name":"b"}`, true},
		} {
			host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"completion/complete","params":{%s,"argument":{"name":"x","value":"y"}}}`, n, test.params))
			quiesce()
			sent, answer := up.take(), strings.Join(host.take(), "\n")
			if forwarded := len(sent) == 1; forwarded == test.refused || test.refused != strings.Contains(answer, fmt.Sprint(wire.CodeInvalidParams)) {
				t.Errorf("%s: the upstream got %q, the host %s", test.params, sent, answer)
			}
		}
	})
}

// A declaration does not keep the bytes of the host's request.
func TestDeclarationIsACopy(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	s, _ := join(agg, "")
	meta := []byte(`{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`)
	r := &host.Request{Method: "x", Respond: func(_ *host.Request, _ json.RawMessage, _ error) {}}
	r.Meta, r.Era = meta, transports.Stateless
	request{s, r}.ready()
	copy(meta, make([]byte, len(meta)))
	first, _ := agg.fleet.Declared.Get()
	for of, got := range map[string]json.RawMessage{"the session": s.Declaration().Capabilities, "the first host": first.Capabilities} {
		if string(got) != `{"roots":{}}` {
			t.Errorf("%s: got %q after the line was used again", of, got)
		}
	}
}
