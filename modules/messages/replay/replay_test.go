package replay

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/recording"
)

// Equal requests that are in flight together each get their own answer and their own progress, as
// many as are recorded or more.
func TestEqualRequestsInFlight(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rec.jsonl")
	text := `{"dynmcp_recording":1,"dynmcp":"x","began":"2026-11-28T00:00:00Z","single":true}` + "\n"
	for n, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"u","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{},"_meta":{"progressToken":2}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"paid"}]}}`,
	} {
		dir := "out"
		if strings.Contains(line, `"result"`) || strings.Contains(line, "progress\",") {
			dir = "in"
		}
		text += fmt.Sprintf(`{"ms":%d,"dir":%q,"server":"u","conn":1,"message":%s}`+"\n", n*600, dir, line)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, lines, err := recording.Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := scriptOf(lines, "")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r := &replayer{script: s, speed: 1, out: &out, log: slog.New(slog.DiscardHandler), ids: map[*exchange][]byte{}, tokens: map[*exchange][]byte{}, asked: map[string]string{}}
		in, host := io.Pipe()
		over := make(chan error, 1)
		go func() { over <- r.serve(t.Context(), in) }()
		const equal = 5
		for id := 10; id < 10+equal; id++ {
			fmt.Fprintf(host, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pay","arguments":{},"_meta":{"progressToken":"token %d"}}}`+"\n", id, id)
			time.Sleep(100 * time.Millisecond)
		}
		host.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
		for id := 10; id < 10+equal; id++ {
			for _, want := range []string{fmt.Sprintf(`"id":%d,"result"`, id), fmt.Sprintf(`"progressToken":"token %d"`, id)} {
				if n := strings.Count(out.String(), want); n != 1 {
					t.Errorf("%s is there %d times in\n%s", want, n, out.String())
				}
			}
		}
	})
}
