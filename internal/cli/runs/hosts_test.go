package runs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/event"
)

// A run with many hosts names some and counts the rest.
func TestManyHostsAreCounted(t *testing.T) {
	for _, n := range []int{0, 1, maxHosts, maxHosts + 1, maxHosts + 37} {
		sessions := []event.Session{{Host: "another replica", Replica: true}}
		for i := range n {
			sessions = append(sessions, event.Session{Host: fmt.Sprint("host", i), User: "ann"})
		}
		var run Run
		run.Hosts, run.More = hostsOf(sessions)
		if len(run.Hosts)+run.More != n || len(run.Hosts) > maxHosts || n > 0 && run.Hosts[0] != "host0 ann" {
			t.Errorf("%d hosts: %d are named and %d counted", n, len(run.Hosts), run.More)
		}
		var text bytes.Buffer
		write(&terminal.Writer{W: &text}, []Found{{Run: run}})
		line, _, _ := strings.Cut(text.String(), "\n")
		if strings.Contains(line, "more") != (n > maxHosts) || n > maxHosts && !strings.Contains(line, fmt.Sprintf("host19 ann and %d more", n-maxHosts)) || strings.Contains(line, "no host") != (n == 0) {
			t.Errorf("%d hosts: got %s", n, line)
		}
	}
}
