package forward

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An upstream of the handshake era gets what a host of the other one sent, without what only that
// era has. A state is refused; a name that is like it is the method's own.
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
