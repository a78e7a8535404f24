package forward

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Params of the stateless era lose the members of that era for an upstream of the handshake
// era. A requestState is refused. Names in other cases belong to the method.
func TestParamsForTheHandshakeEra(t *testing.T) {
	for text, want := range map[string]string{
		`{"ref":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1}}`: `{"ref":1,"_meta":{"a":1}}`,
		`{"ref":1,"task":{},"inputResponses":{}}`:                                          `{"ref":1}`,
		`{"ref":1,"RequestState":"x","InputResponses":{}}`:                                 `{"ref":1,"RequestState":"x","InputResponses":{}}`,
		`{"ref":1,"requestState":"x"}`:                                                     "",
	} {
		got, err := toHandshake(wire.Object{Text: []byte(text)})
		if (err != nil) != (want == "") || err == nil && string(got.Text) != want {
			t.Errorf("%s: got %s (%v), want %q", text, got.Text, err, want)
		}
	}
}
