package ui

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// fakeRun serves the socket of a run with a process id, and counts how often it is asked.
func fakeRun(t *testing.T, pid int, config string) (asked *atomic.Int64) {
	t.Helper()
	dir := localhttp.Dirs()[0]
	if err := localhttp.MakePrivate(dir); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, fmt.Sprint(pid)+localhttp.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(runs.Run{PID: pid, Config: config})
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return asked
}

// A poll for calls asks no run and loads no config, an act of the page asks only its own run, and polls of
// several pages for all runs ask each once. What changes is seen.
func TestPollsAskLittle(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for a run listens on a unix socket")
	}
	dir, err := os.MkdirTemp("", "ui") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := 1<<29+os.Getpid(), 1<<30+os.Getpid() // no processes
	const text = `{"mcp":{"a":{"command":"none"}},"activity":{"dir":"record"}}`
	ofOne, ofTwo := fakeRun(t, one, write("one.json", text)), fakeRun(t, two, write("two.json", text))
	s := newServer()
	s.from = &conf.Flags{Config: write("own.json", text)}
	ctx := module.With(t.Context(), []module.Module{{Keys: []schema.Section{schema.SectionOf[record.Keys]("activity")}}})
	asked := func(what string, wantOne, wantTwo int64) {
		t.Helper()
		if a, b := ofOne.Swap(0), ofTwo.Swap(0); a != wantOne || b != wantTwo {
			t.Errorf("%s: the runs were asked %d and %d times, want %d and %d", what, a, b, wantOne, wantTwo)
		}
	}
	calls := func(id string) error {
		_, err := s.callsSince(ctx, callsQuery{Place: id})
		return err
	}
	places := func() (mine []place) {
		t.Helper()
		all, err := s.places(ctx, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.ID == ownID || p.ID == fmt.Sprint(one) || p.ID == fmt.Sprint(two) { // not runs of other tests
				mine = append(mine, p)
			}
		}
		return mine
	}

	if err := calls(fmt.Sprint(one)); err != nil {
		t.Error(err)
	}
	asked("calls of a run that no page has asked for", 1, 0)
	if all := places(); len(all) != 3 || all[0].Servers[0].Name != "a" || !all[2].Calls {
		t.Errorf("got %+v", all)
	}
	s.asked = time.Now().Add(time.Hour) // however slow this is, the answer stays new
	places()
	asked("two pages", 1, 1)
	kept := map[string]*loaded{}
	for _, p := range places() {
		kept[p.ID] = s.configOf(t.Context(), &p)
		if err := calls(p.ID); err != nil {
			t.Error(err)
		}
	}
	asked("calls", 0, 0)
	if _, err := s.at(t.Context(), fmt.Sprint(two)); err != nil {
		t.Error(err)
	}
	asked("an act at a run", 0, 1)
	if _, err := s.at(t.Context(), ownID); err != nil {
		t.Error(err)
	}
	asked("an act at the config", 0, 0)

	s.asked = time.Now().Add(-placesAge)
	for _, p := range places() {
		if s.configOf(t.Context(), &p) != kept[p.ID] {
			t.Errorf("%s is loaded again", p.Config)
		}
	}
	asked("a later poll", 1, 1)
	write("one.json", `{"mcp":{"b":{"command":"none"}},"activity":false}`)
	s.asked = time.Now().Add(-placesAge)
	if all := places(); all[0].Servers[0].Name != "b" || all[0].Calls || calls(all[0].ID) == nil || calls(all[1].ID) != nil {
		t.Errorf("after a change: %+v", all[0])
	}
	write("one.json", `{`)
	s.asked = time.Now().Add(-placesAge)
	if all := places(); all[0].Error == "" || len(all[0].Servers) != 0 {
		t.Errorf("a config with a fault: %+v", all[0])
	}
	kept[ownID].read = time.Now().Add(-configAge)
	if p, err := s.at(t.Context(), ownID); err != nil || s.configOf(t.Context(), p) == kept[ownID] {
		t.Error("a config is not loaded again after a while:", err)
	}
	if calls("1") == nil {
		t.Error("a run that is gone has calls")
	}
}
