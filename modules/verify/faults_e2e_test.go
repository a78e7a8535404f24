//go:build e2e

package verify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// Each fault of a proxy between dynmcp and a server is found.
func TestEachFaultIsFound(t *testing.T) {
	if len(faults) < 30 {
		t.Fatalf("%d faults", len(faults))
	}
	v, s := subject(t)
	const era = transports.Handshake
	before, p, err := v.askDirectly(t.Context(), s, era, nil, v.mayCall(s))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := v.askDirectly(t.Context(), s, era, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	varying := variations{}
	varying.add(before, again)
	withdrawn := &plan{changes: []string{}, cancel: request{method: "tools/call", tool: []byte(`"sleep"`), arguments: []byte(`{"ms":500,"count":true}`)}}
	slept, _, err := v.askDirectly(t.Context(), s, era, withdrawn, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(faults, fault{}) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := *v
			w.between = through(f.name)
			if strings.Contains(f.name, "lost") || strings.Contains(f.name, "not announced") {
				w.wait = 2 * time.Second // the fault is found by the timeout
			}
			before, p := before, p
			if strings.Contains(f.name, "cancel") {
				before, p = slept, withdrawn
			}
			shown, err := w.askBehind(t.Context(), s, schema.ExposeDirect, era, p)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, row := range rowsOf(before, shown, varying) {
				for _, f := range row.Findings {
					for _, d := range f.Differences {
						found = append(found, strings.Join([]string{row.What, f.Name, d.Path, d.What}, " "))
					}
				}
			}
			if f.name == "" && found != nil || f.name != "" && !slices.ContainsFunc(found, func(one string) bool { return strings.HasPrefix(one, f.found) }) {
				t.Errorf("want %q, found:\n%s", f.found, strings.Join(found, "\n"))
			}
		})
	}
}
