package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
)

// meanTheSame reports whether two definitions of a tool mean the same. White space, the order of
// members, icons and _meta do not count.
func meanTheSame(now, before *catalog.Tool) bool {
	return now == before || bytes.Equal(now.Raw, before.Raw) || reflect.DeepEqual(meaning(now.Raw), meaning(before.Raw))
}

func meaning(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // large numbers may differ in their last digit
	var members map[string]any
	_ = d.Decode(&members) // listed entries are objects
	delete(members, "_meta")
	delete(members, "icons")
	return members
}

// Limits of what changes returns, in bytes.
const (
	maxDiff    = 6 << 10
	mostSchema = 8 << 10
)

// changes returns how a tool's definition differs from an earlier one, and its current input
// schema.
func changes(now, before *catalog.Tool) string {
	_, lines, _ := strings.Cut(string(diff.Diff("before", []byte(layOut(before)), "now", []byte(layOut(now)))), "+++ now\n")
	if len(lines) > maxDiff {
		lines = lines[:strings.LastIndexByte(lines[:maxDiff], '\n')+1] + "[and more]\n"
	}
	s := "What has changed:\n" + lines
	switch {
	case len(now.InputSchema) > mostSchema:
		s += fmt.Sprintf("\nIts input schema is long: discover_tool {\"tool_name\": %s} shows it.", display.Quote(now.Name))
	case now.InputSchema != nil:
		s += "\nInput Schema:\n" + display.JSON(now.InputSchema)
	}
	return strings.TrimSuffix(s, "\n")
}

// layOut returns the definition on many lines, for a comparison by lines.
func layOut(t *catalog.Tool) string {
	var b strings.Builder
	if title := display.Fold(t.Title); title != "" {
		fmt.Fprintf(&b, "Title: %s\n", title)
	}
	fmt.Fprintf(&b, "Description: %s\n", strings.TrimSpace(display.Clean(t.Description)))
	for _, part := range []struct {
		name string
		json json.RawMessage
	}{{"Input Schema", t.InputSchema}, {"Output Schema", t.OutputSchema}, {"Annotations", t.Annotations}} {
		if part.json == nil {
			continue
		}
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(display.JSON(part.json)), "", " ") == nil {
			fmt.Fprintf(&b, "%s:\n%s\n", part.name, indented.String())
		}
	}
	return b.String()
}
