// Command scripts does twelve tasks with the tools of real and made-up servers, first with
// calls of use_tool and then with one run_script. It compares the calls, the turns of the
// model, the tokens that it writes and reads (o200k), and the time. Both answers must be the
// same, and for a task of ten calls or more, the script must need at most a tenth of the tokens.
// Then it compares a call inside a script with use_tool, and measures a script without calls.
//
// Usage, from the root of the module:
//
//	go run -C bench ./scripts                 all, with servers from npm
//	go run -C bench ./scripts -short          tasks of made-up servers; times are not judged
//	go run -C bench ./scripts -selftest       check that the judges find faults
//
// Several calls at once are one turn. Earlier tokens are not counted again in each turn,
// although hosts pay for them again.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		if err := serveTracker(); err != nil {
			log.Fatal(err)
		}
		return
	}
	short := flag.Bool("short", false, "only tasks of made-up servers; times are printed and not judged")
	selftest := flag.Bool("selftest", false, "only run what the judges must find")
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	if err := run(*short, *selftest); err != nil {
		log.Fatal(err)
	}
}

func run(short, selftest bool) error {
	dir, err := programs.Build("./cmd/dynmcp", "./internal/mcptest/fakemcp", "./bench/scripts")
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	var v verdict.Verdict
	if selftest {
		err = runFaults(dir, &v)
	} else {
		err = measure(filepath.Join(dir, "dynmcp"), dir, short, !short, &v)
	}
	if err != nil {
		return err
	}
	if !v.Close() {
		return errors.New("scripts are not what they must be")
	}
	return nil
}

// measure does all tasks with a build of dynmcp, and judges the results.
func measure(dynmcp, dir string, short, judgeTimes bool, v *verdict.Verdict) error {
	world, err := prepare(dir, short)
	if err != nil {
		return err
	}
	h, err := start(dynmcp, world.config)
	if err != nil {
		return err
	}
	defer h.End()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "task\tcalls\tturns\ttokens\tms\tby script: turns\ttokens\tms\tof the tokens\t")
	for _, t := range tasks {
		if short && t.npm {
			continue
		}
		if err := h.compare(t, world, w, v); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	w.Flush()
	if err := h.times(judgeTimes, v); err != nil {
		return err
	}
	return h.Stop()
}

// A script may need at most this part of the tokens, if a task has manyCalls or more.
const (
	most      = 0.1
	manyCalls = 10
)

// compare does a task in both ways.
func (h *host) compare(t task, world world, w *tabwriter.Writer, v *verdict.Verdict) error {
	h.spent = spent{}
	began := time.Now()
	want, err := t.calls(h, world)
	if err != nil {
		return err
	}
	byCalls, took := h.spent, time.Since(began)
	h.spent = spent{}
	began = time.Now()
	got, err := h.script(t.script, world.dir)
	byScript, tookScript := h.spent, time.Since(began)
	if err != nil {
		v.Fail("%s: the script fails: %v", t.name, err)
		return nil
	}
	if got != want {
		v.Fail("%s: the script says %.200q, call by call it is %.200q", t.name, got, want)
	}
	part := float64(byScript.tokens) / float64(byCalls.tokens)
	if byCalls.calls >= manyCalls && part > most {
		v.Fail("%s: the script needs %.1f %% of the tokens, at most %.0f %% are allowed", t.name, 100*part, 100*most)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t\n", t.name, byCalls.calls, byCalls.turns, byCalls.tokens, took.Milliseconds(),
		byScript.turns, byScript.tokens, tookScript.Milliseconds(), 100*part)
	return nil
}

// The judges must find these faults in a build of dynmcp.
var faults = []sabotage.Fault{
	{
		Name:  "scripts print all that they read",
		Edits: []sabotage.Edit{{File: "modules/scripts/engine/calls.go", Old: "	delete(s.inFlight, a.ID)\n", New: "	delete(s.inFlight, a.ID)\n	s.send(Event{Printed: string(a.Result)})\n"}},
		Found: "of the tokens",
	},
	{
		Name:  "a failed call is taken for success",
		Edits: []sabotage.Edit{{File: "modules/scripts/engine/calls.go", Old: `[]byte("true")) {`, New: `[]byte("never")) {`}},
		Found: "the script says",
	},
	{
		Name:  "each call of a script waits",
		Edits: []sabotage.Edit{{File: "modules/scripts/script/run.go", Old: "		began := time.Now()\n", New: "		began := time.Now()\n		time.Sleep(time.Millisecond)\n"}},
		Found: "more than use_tool",
	},
}

func runFaults(dir string, v *verdict.Verdict) error {
	for i, fault := range faults {
		at := filepath.Join(dir, fmt.Sprint("fault", i))
		program, err := fault.Build(at)
		if err != nil {
			return err
		}
		var of verdict.Verdict
		if err := os.Symlink(filepath.Join(dir, "fakemcp"), filepath.Join(at, "fakemcp")); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(dir, "scripts"), filepath.Join(at, "scripts")); err != nil {
			return err
		}
		if err := measure(program, at, true, true, &of); err != nil {
			return err
		}
		fault.Judge(v, &of)
	}
	return nil
}

// A world is what the tasks are about: a directory with notes and a repository, and the config.
type world struct{ dir, config string }

// prepare writes a world below dir, where the programs are.
func prepare(dir string, short bool) (world, error) {
	w := world{dir: filepath.Join(dir, "world"), config: filepath.Join(dir, "mcp.json")}
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env,omitempty"`
	}
	servers := map[string]server{
		"tracker": {Command: filepath.Join(dir, "scripts"), Args: []string{"serve"}},
		"fake":    {Command: filepath.Join(dir, "fakemcp"), Args: []string{"-name", "fake"}},
	}
	if !short {
		npm := func(name string, args ...string) server {
			return server{Command: "npx", Args: append([]string{"-y", name}, args...)}
		}
		memory, git := npm("@modelcontextprotocol/server-memory"), npm("@cyanheads/git-mcp-server@2.15.3")
		memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}
		git.Env = map[string]string{"MCP_TRANSPORT_TYPE": "stdio", "MCP_LOG_LEVEL": "error"}
		servers["memory"], servers["git"] = memory, git
		servers["files"] = npm("@modelcontextprotocol/server-filesystem", w.dir)
		servers["everything"] = npm("@modelcontextprotocol/server-everything")
	}
	config, err := json.Marshal(map[string]any{"mcp": servers, "scripts": map[string]any{"tools": []string{"*"}}})
	if err != nil {
		return w, err
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "out"), 0o700); err != nil {
		return w, err
	}
	return w, errors.Join(os.WriteFile(w.config, config, 0o600), w.write())
}

// write fills the directory: 24 notes, and a repository that has each of them in a commit.
func (w world) write() error {
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", w.dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := git("init", "-q"); err != nil {
		return err
	}
	for i := range 24 {
		name := fmt.Sprintf("note%02d.md", i)
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(prose(i, 220)), 0o600); err != nil {
			return err
		}
		if err := errors.Join(git("add", name), git("commit", "-q", "-m", fmt.Sprintf("Write note %d\n\n%s", i, prose(i+50, 40)))); err != nil {
			return err
		}
	}
	return nil
}
