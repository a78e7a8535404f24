package judge

import (
	"fmt"
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
	if !strings.Contains(string(doc), table()) {
		t.Errorf("docs/policy.md does not have this table:\n%s", table())
	}
}

// table returns the rules as a table in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| | rule | a call runs if |\n|---|---|---|\n")
	for i, r := range Rules {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", i+1, r.Name, r.Says)
	}
	return b.String()
}
