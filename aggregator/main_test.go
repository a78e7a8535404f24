package aggregator

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestMain(m *testing.M) {
	wire.OverwriteLent()
	mcptest.Main(m)
}

// memberOfEach returns a string member of every element of an array.
func memberOfEach(t *testing.T, array []byte, name string) []string {
	t.Helper()
	var all []string
	for _, element := range elements(t, array) {
		text, ok := element[name].(string)
		if !ok {
			t.Fatalf("no %s in %v", name, element)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		t.Fatalf("nothing in %s", array)
	}
	slices.Sort(all)
	return all
}

func elements(t *testing.T, array []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal(array, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
