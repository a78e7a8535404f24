package exposed

import (
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

// The surfaces that a config may name are those that exist, in the order of preference.
func TestSurfacesAreThoseOfTheSchema(t *testing.T) {
	var names []string
	for _, line := range surfaces {
		names = append(names, line.name)
	}
	if names = append(names, schema.ExposeAuto); !slices.Equal(names, schema.Surfaces) {
		t.Errorf("there are %q, the schema has %q", names, schema.Surfaces)
	}
}
