package judge

import (
	"os"
	"strings"
	"testing"
)

// The documentation has the rules, in their order.
func TestRulesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), Table()) {
		t.Errorf("docs/policy.md does not have this table:\n%s", Table())
	}
}
