package exposed

import (
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/schema"
)

// Surfaces are in the order of preference of the schema, wherever they come from.
func TestSurfacesAreInTheOrderOfTheSchema(t *testing.T) {
	var added []surface.Kind
	for _, name := range slices.Backward(schema.Surfaces) {
		if name != schema.ExposeAuto && !slices.ContainsFunc(core, func(k surface.Kind) bool { return k.Name == name }) {
			added = append(added, surface.Kind{Name: name, Start: surface.Plain(nil)})
		}
	}
	var names []string
	for _, m := range Start(added, nil) {
		names = append(names, m.name)
	}
	if names = append(names, schema.ExposeAuto); !slices.Equal(names, schema.Surfaces) {
		t.Errorf("there are %q, the schema has %q", names, schema.Surfaces)
	}
}
