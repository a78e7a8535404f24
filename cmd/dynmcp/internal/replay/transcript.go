package replay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/internal/recording"
)

// transcriptOf makes a transcript of a recording, as transcript_test.go of package aggregator
// plays it. Hosts and servers do what was recorded, and nothing by themselves.
func transcriptOf(header recording.Header, lines []recording.Line) []byte {
	names := namesOf(lines)
	var setup, script bytes.Buffer
	for _, name := range slices.Sorted(maps.Values(names)) {
		if strings.HasPrefix(name, "host") {
			fmt.Fprintf(&setup, "%s -\n", name)
		} else {
			fmt.Fprintf(&setup, "%s scripted -\n", name)
		}
	}
	if header.Single {
		setup.WriteString("single\n")
	}
	for _, l := range lines {
		if l.Message == nil {
			continue
		}
		verb := "receives"
		if l.Dir == "in" {
			verb = "sends"
		}
		text := strings.Replace(string(l.Message), `{"jsonrpc":"2.0",`, `{`, 1)
		fmt.Fprintf(&script, "%-19s | %s\n", names[actor(l)]+" "+verb, text)
	}
	return txtar.Format(&txtar.Archive{
		Comment: fmt.Appendf(nil, "Recorded at %s with dynmcp %s.\n\n", header.Began.Format(time.DateTime), header.Dynmcp),
		Files:   []txtar.File{{Name: "setup", Data: setup.Bytes()}, {Name: "transcript", Data: script.Bytes()}},
	})
}

// An actor is a host or a server.
func actor(l recording.Line) [2]string {
	if l.Host != "" {
		return [2]string{"host", l.Host}
	}
	return [2]string{"upstream", l.Server}
}

// namesOf names the hosts by number, and the servers as they are. An only one needs no name.
func namesOf(lines []recording.Line) map[[2]string]string {
	names, count := map[[2]string]string{}, map[string]int{}
	for _, l := range lines {
		if a := actor(l); l.Message != nil && names[a] == "" {
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
