package tools

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest/viewtest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A list of many tools is one embedded resource, as the proxy extension requires, up to a
// number of bytes. A longer list is cut, and the answer says so.
func TestProxyListIsOneResource(t *testing.T) {
	v := viewtest.One(viewtest.Many(622))
	texts := func(maxBytes int) (all []string) {
		raw, err := list(v, kindTool, filter{}, 0, maxBytes, "")
		if err != nil {
			t.Fatal(err)
		}
		for item := range wire.Elements(wire.Get(raw, "content")) {
			if resource := wire.Get(item, "resource"); resource != nil {
				item = resource
			}
			text, _ := wire.Text(wire.Get(item, "text"))
			all = append(all, text)
		}
		return all
	}
	whole := texts(1 << 20)[0]
	if got := texts(len(whole)); len(got) != 1 || got[0] != whole {
		t.Errorf("of %d bytes, which are allowed, got %d contents", len(whole), len(got))
	}
	got := texts(len(whole) - 1)
	if len(got) != 2 || len(got[0]) >= len(whole) || got[1] != `1 to 621 of 622. Go on with "cursor": "621".` {
		t.Errorf("with one byte less got %q", got[1:])
	}
}
