//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

func TestAnswersAreJudged(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"n7"}],"structuredContent":{"nonce":"n7"}}}`
	for _, c := range []struct {
		messages string // a line each
		want     uint8
	}{
		{ok, succeeded},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}` + "\n" + ok, succeeded},
		{strings.ReplaceAll(ok, `"n7"`, `"n8"`), misrouted},
		{strings.Replace(ok, `"id":7`, `"id":8`, 1), misrouted},
		{ok + "\n" + ok, misrouted},
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`, misrouted},
		{`{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"it died (outcome unknown)"}]}}`, unknown},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"x","data":{"outcome":"not_sent"}}}`, notSent},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"x"}}`, unsaid},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, brokenOff},
	} {
		var messages [][]byte
		for line := range strings.SplitSeq(c.messages, "\n") {
			messages = append(messages, []byte(line))
		}
		if got, text := judgeAnswer(messages, "7", "n7"); got != c.want {
			t.Errorf("%s: %s (%s), want %s", c.messages, fateNames[got], text, fateNames[c.want])
		}
	}
}

// The call is of a host at r1 with a session at r2, to a server that r3 runs.
func TestFailuresAreExcusedByFaultsInTheirWay(t *testing.T) {
	const s = int64(1e9)
	c := &cluster{proof: &proof{dir: t.TempDir()}}
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		c.replicas = append(c.replicas, &node{name: name})
	}
	w := &crowd{cluster: c, servers: []server{{name: "one-0", place: "one"}, {name: "each-0", place: "each"}}}
	if err := os.WriteFile(filepath.Join(c.proof.dir, "one-0.10.1"+ledger.Suffix), []byte("1 start r3\n900000000000 end -\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	books, err := ledger.Read(c.proof.dir)
	if err != nil {
		t.Fatal(err)
	}
	failed := record{call: 1, fate: unknown, entry: 0, owner: 1, from: 100 * s, to: 110 * s}
	for name, test := range map[string]struct {
		change func(r *record)
		fault  fault
		want   bool
	}{
		"nothing was done":            {nil, fault{replica: -1, node: &node{name: "nats1"}, kind: killed, from: 105 * s, to: 106 * s}, false},
		"its entry was killed":        {nil, fault{replica: 0, kind: killed, from: 105 * s, to: 106 * s}, true},
		"its session's was killed":    {nil, fault{replica: 1, kind: killed, from: 105 * s, to: 106 * s}, true},
		"its server's was killed":     {nil, fault{replica: 2, kind: killed, from: 105 * s, to: 106 * s}, true},
		"another was killed":          {nil, fault{replica: 3, kind: killed, from: 105 * s, to: 106 * s}, false},
		"of a server on all replicas": {func(r *record) { r.server = 1 }, fault{replica: 2, kind: killed, from: 105 * s, to: 106 * s}, false},
		"killed before":               {nil, fault{replica: 0, kind: killed, from: 90 * s, to: 105 * s}, false},
		"killed after":                {nil, fault{replica: 0, kind: killed, from: 111 * s, to: 112 * s}, false},
		"stopped before":              {nil, fault{replica: 0, kind: stopped, from: 90 * s, to: 105 * s}, true},
		"stopped and over":            {nil, fault{replica: 0, kind: stopped, from: 80 * s, to: 90 * s}, false},
		"cut off for a moment":        {nil, fault{replica: 2, kind: cutPeers, from: 95 * s, to: 96 * s}, true},
		"and that is long over":       {nil, fault{replica: 2, kind: cutPeers, from: 93 * s, to: 95 * s}, false},
		"killed, and started at once": {nil, fault{replica: 2, kind: killed, from: 98 * s, to: 98 * s}, false},
		"a session lost long ago":     {func(r *record) { r.fate = forgotten }, fault{replica: 1, kind: killed, from: 20 * s, to: 21 * s}, true},
		"a session lost to nothing":   {func(r *record) { r.fate = forgotten }, fault{replica: 3, kind: killed, from: 20 * s, to: 21 * s}, false},
	} {
		r := failed
		if test.change != nil {
			test.change(&r)
		}
		if test.fault.node == nil {
			test.fault.node = c.replicas[test.fault.replica]
		}
		if got := w.excused(r, books, []fault{test.fault}, nil); got != test.want {
			t.Errorf("%s: excused %t", name, got)
		}
	}
}

// The server's process at r3 ended at 95 s, and another started at r1 at 120 s.
func TestCallsOfWhatCannotBePlacedAreExcused(t *testing.T) {
	const s = int64(1e9)
	dir := t.TempDir()
	for name, text := range map[string]string{"one-0.10.1": "1 start r3\n95000000000 beat -\n", "one-0.11.2": "120000000000 start r1\n900000000000 end -\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+ledger.Suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	books, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	on := func(name string, from, to int64) fault {
		replica := 0
		if strings.HasPrefix(name, "nats") {
			replica = -1
		}
		return fault{node: &node{name: name}, replica: replica, kind: killed, from: from * s, to: to * s}
	}
	for name, test := range map[string]struct {
		from, to int64
		faults   []fault
		want     bool
	}{
		"its replica and NATS":           {100, 105, []fault{on("r3", 95, 99), on("nats1", 94, 98)}, true},
		"its replica alone":              {100, 105, []fault{on("r3", 95, 99)}, false},
		"its replica, then another":      {100, 105, []fault{on("r3", 95, 99), on("r1", 102, 104)}, true},
		"another long before":            {110, 115, []fault{on("r3", 95, 99), on("r1", 102, 104)}, false},
		"NATS alone":                     {100, 105, []fault{on("nats1", 94, 98)}, false},
		"another replica and NATS":       {100, 105, []fault{on("r2", 95, 99), on("nats1", 94, 98)}, false},
		"its replica, NATS long ago":     {110, 115, []fault{on("r3", 95, 99), on("nats1", 94, 98)}, false},
		"its replica later, and NATS":    {100, 105, []fault{on("r3", 98, 99), on("nats1", 94, 98)}, false},
		"it was running when called":     {94, 105, []fault{on("r3", 95, 99), on("nats1", 94, 98)}, false},
		"it ran again before the answer": {115, 121, []fault{on("r3", 95, 99), on("nats1", 110, 118)}, false},
	} {
		if got := unplaced("one-0", record{from: test.from * s, to: test.to * s}, books, test.faults); got != test.want {
			t.Errorf("%s: excused %t", name, got)
		}
	}
	if unplaced("one-1", record{from: 100 * s, to: 105 * s}, books, []fault{on("r3", 95, 99), on("nats1", 94, 98)}) {
		t.Error("a server that never ran is excused")
	}
}

// A lease lapses if NATS has another fault before it may have elected a leader.
func TestLeasesLapseWhileNATSMayHaveNoLeader(t *testing.T) {
	const s = int64(time.Second)
	for name, test := range map[string]struct {
		hits []int64 // times of faults of a server of NATS
		want bool
	}{
		"nothing was done":         {nil, false},
		"one election":             {[]int64{90}, false},
		"one after the other":      {[]int64{84, 90, 97}, true},
		"too soon for a lease":     {[]int64{89, 93, 97}, false},
		"with a leader in between": {[]int64{70, 82, 97}, false},
		"long before":              {[]int64{60, 66, 72}, false},
		"later":                    {[]int64{101, 105, 112}, false},
	} {
		var faults []fault
		for _, at := range test.hits {
			faults = append(faults, fault{node: &node{name: "nats1"}, replica: -1, kind: killed, from: at * s, to: (at + 1) * s})
		}
		if got := lapsed(ledger.Process{Last: 100 * s}, faults); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// NATS had no leader if two replicas without faults log that they do not reach it.
func TestOutagesAreWhatTwoReplicasSay(t *testing.T) {
	const s = int64(time.Second)
	began := ledger.Now() - 1000*s
	day := time.Now().Add(-1000 * time.Second)
	c := &cluster{proof: &proof{dir: t.TempDir()}}
	for _, name := range []string{"r1", "r2", "r3"} {
		c.replicas = append(c.replicas, &node{name: name, log: filepath.Join(c.proof.dir, name)})
	}
	w := &crowd{cluster: c, servers: []server{{name: "one-0", place: "one"}}}
	at := func(of string, seconds int64) ledger.Process {
		return ledger.Process{Server: "one-0", Replica: of, Start: began, Last: began + seconds*s}
	}
	for name, test := range map[string]struct {
		says   map[string]int64 // times at which a replica logged that it does not reach NATS
		faults []fault
		want   bool
	}{
		"nobody":                      {nil, nil, false},
		"one":                         {map[string]int64{"r1": 103}, nil, false},
		"two":                         {map[string]int64{"r1": 103, "r2": 106}, nil, true},
		"two, one after the other":    {map[string]int64{"r1": 103, "r2": 120}, nil, false},
		"two, long after":             {map[string]int64{"r1": 140, "r2": 141}, nil, false},
		"two, before":                 {map[string]int64{"r1": 80, "r2": 81}, nil, false},
		"two, one of them is cut off": {map[string]int64{"r1": 103, "r2": 103}, []fault{{replica: 1, node: c.replicas[1], from: began + 90*s, to: began + 100*s}}, false},
	} {
		for _, n := range c.replicas {
			text := "time=2026-11-25T21:53:36.015Z level=INFO msg=\"serving HTTP\"\nno line of a log\n"
			if seconds, ok := test.says[n.name]; ok {
				stamp := day.Add(time.Duration(seconds * s)).UTC().Format(time.RFC3339Nano)
				text += "time=" + stamp + " level=WARN msg=\"the cluster's state cannot be reached: nothing new is placed\" err=\"no answer\"\n"
			}
			if err := os.WriteFile(n.log, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		books := &ledger.Books{Processes: []ledger.Process{at("r3", 100)}}
		failed := record{call: 1, fate: unknown, entry: 2, owner: 2, from: began + 99*s, to: began + 101*s}
		if got := w.excused(failed, books, test.faults, w.outages(test.faults)); got != test.want {
			t.Errorf("%s: excused %t", name, got)
		}
	}
}
