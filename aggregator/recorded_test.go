package aggregator

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/recording"
)

// addedByTests matches what a transcript's upstreams add to their messages, and our version.
var addedByTests = regexp.MustCompile(`\$CONTENT,|,\$(GREASE|CONTENT)|"clientInfo":\{"name":"dynmcp","version":"[^"]*"\}`)

// receivedBy returns what an end of a transcript receives, in order.
func receivedBy(who string, transcript []byte) (lines []string) {
	for line := range strings.Lines(string(transcript)) {
		if strings.HasPrefix(line, who+" receives") {
			lines = append(lines, addedByTests.ReplaceAllString(line, ""))
		}
	}
	return lines
}

// The recording of a session of real processes is turned into a transcript. When that is
// played, host and upstream receive the same messages.
func TestRecordedSession(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "session.jsonl")
	host := mcptest.StartDynmcp(t, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t))
	host.Initialize("2025-11-25", `{}`)
	host.Call("tools/list", nil)
	host.Tool("echo", `{"n":9007199254740993,"s":"\u00e9"}`)
	host.Call("tools/call", mcptest.ToolParams("progress", `{"steps":3}`, `"_meta":{"progressToken":"p"}`))
	host.Tool("fail", `{"code":-32042}`)
	host.Call("resources/read", `{"uri":"fake://fakemcp/text"}`)
	host.Call("prompts/get", `{"name":"none"}`)
	host.CloseStdin()
	host.Wait()
	header, lines, err := recording.Read(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	archive := transcriptOf(header, lines)
	want := slices.Clone(section(archive, "transcript").Data)
	var got []byte
	synctest.Test(t, func(t *testing.T) { got = play(t, archive, false) })
	for who, least := range map[string]int{"host": 10, "upstream": 5} {
		expected := receivedBy(who, want)
		if diff := cmp.Diff(expected, receivedBy(who, got)); diff != "" || len(expected) < least {
			t.Errorf("%s received %d messages (-recorded +played):\n%s", who, len(expected), diff)
		}
	}
}
