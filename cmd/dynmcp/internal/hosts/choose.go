package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
)

// TwoLines lists names of hosts in two lines.
func TwoLines(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// Among returns the host that a user named, one of those.
func Among(name string, among []string) (Host, error) {
	h, _ := Named(name)
	if !slices.Contains(among, name) {
		return h, hint.With(fmt.Errorf("unknown host %q", name), "use %s", strings.Join(among, ", "))
	}
	return h, nil
}
