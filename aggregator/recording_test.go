package aggregator

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// recorded is a recording of dynmcp record to make a transcript of:
//
//	go test ./aggregator -run Transcripts -recording run.jsonl -update
//
// writes testdata/run.txtar. Keys of its config that matter are added by hand.
var recorded = flag.String("recording", "", "a recording to make a transcript of, with -update")

// transcribe writes the transcript of a recording into testdata.
func transcribe(t *testing.T, path string) {
	header, lines, err := recording.Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if err := os.WriteFile(filepath.Join("testdata", name+".txtar"), txtar.Format(transcriptOf(header, lines)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// transcriptOf makes a transcript of a recording. Hosts send only what was recorded. Servers
// answer the requests at their start automatically, with the recorded answers: the order of
// those requests may differ.
func transcriptOf(header recording.Header, lines []recording.Line) *txtar.Archive {
	names := namesOf(lines)
	starts := map[string]*start{}
	var setup, script bytes.Buffer
	for _, l := range lines {
		name := names[recordedActor(l)]
		if l.Message == nil {
			continue
		}
		if l.Host == "" {
			if starts[name] == nil {
				starts[name] = &start{asked: map[string]string{}, answers: map[string][]byte{}}
			}
			if starts[name].takes(l) {
				continue
			}
		}
		verb := "receives"
		if l.Dir == "in" {
			verb = "sends"
		}
		text := strings.Replace(string(l.Message), `{"jsonrpc":"2.0",`, `{`, 1)
		fmt.Fprintf(&script, "%-19s | %s\n", name+" "+verb, text)
	}
	archive := &txtar.Archive{
		Comment: fmt.Appendf(nil, "Recorded at %s with dynmcp %s.\n\n", header.Began.Format(time.DateTime), header.Dynmcp),
		Files:   []txtar.File{{Name: "setup"}},
	}
	for _, name := range slices.Sorted(maps.Values(names)) {
		if s := starts[name]; s == nil {
			fmt.Fprintf(&setup, "%s -\n", name)
		} else {
			fmt.Fprintf(&setup, "%s %s {}\n", name, s.version())
			for _, method := range slices.Sorted(maps.Keys(s.answers)) {
				archive.Files = append(archive.Files, txtar.File{Name: name + " " + method, Data: append(s.answers[method], '\n')})
			}
		}
	}
	if header.Single {
		setup.WriteString("single\n")
	}
	if header.Expose != nil {
		fmt.Fprintf(&setup, "expose %s\n", strings.Join(header.Expose, " "))
	}
	archive.Files[0].Data = setup.Bytes()
	archive.Files = append(archive.Files, txtar.File{Name: "transcript", Data: script.Bytes()})
	return archive
}

// A start has the first requests to a server on each of its connections.
type start struct {
	asked   map[string]string // methods by connection and id; "" by connection and method
	answers map[string][]byte // the first results, by method
}

var atStart = []string{"initialize", "server/discover", "subscriptions/listen", "tools/list", "prompts/list", "resources/list", "resources/templates/list"}

// takes keeps a line that is part of the start, and reports whether it is.
func (s *start) takes(l recording.Line) bool {
	m, err := wire.Parse(l.Message)
	if err != nil {
		return false
	}
	at := func(what []byte) string { return fmt.Sprintf("%d %s", l.Conn, what) }
	_, again := s.asked[at([]byte(m.Method))]
	switch {
	case l.Dir == "out" && slices.Contains(atStart, m.Method) && !again:
		s.asked[at([]byte(m.Method))], s.asked[at(m.ID)] = "", m.Method
		return true
	case l.Dir == "out":
		return m.Method == "notifications/initialized"
	case m.Method == "notifications/subscriptions/acknowledged":
		return s.asked[at(wire.Get(m.Params, "_meta", transports.MetaSubscriptionID))] == "subscriptions/listen"
	}
	method := s.asked[at(m.ID)]
	if m.Method != "" || method == "" || method == "subscriptions/listen" {
		return false
	}
	if m.Result != nil && s.answers[method] == nil {
		s.answers[method] = bytes.Clone(m.Result)
	}
	return true
}

// version returns the server's protocol version.
func (s *start) version() string {
	version, _ := wire.Text(wire.Get(s.answers["initialize"], "protocolVersion"))
	return cmp.Or(version, transports.StatelessVersion)
}

// recordedActor returns "host" or "upstream", and its name.
func recordedActor(l recording.Line) [2]string {
	if l.Host != "" {
		return [2]string{"host", l.Host}
	}
	return [2]string{"upstream", l.Server}
}

// namesOf names hosts by number, and servers by name. An only host or server needs no name.
func namesOf(lines []recording.Line) map[[2]string]string {
	names, count := map[[2]string]string{}, map[string]int{}
	for _, l := range lines {
		if a := recordedActor(l); l.Message != nil && names[a] == "" {
			count[a[0]]++
			names[a] = fmt.Sprintf("host %d", count[a[0]])
			if a[0] == "upstream" {
				names[a] = "upstream " + a[1]
			}
		}
	}
	for a := range names {
		if count[a[0]] == 1 {
			names[a] = a[0]
		}
	}
	return names
}
