// Package sabotage builds dynmcp with a fault, to test that a verdict finds it. go build -overlay puts
// the fault into the build; source files do not change.
package sabotage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// A Fault is a change of dynmcp, and the failure that a verdict must report.
type Fault struct {
	Name  string
	Edits []Edit
	Found string // part of a failure of the verdict
}

// An Edit replaces a text in a file of the module, which must occur once.
type Edit struct{ File, Old, New string }

// Build builds dynmcp with the fault into dir, and returns the program. The working directory must be
// the root of the module.
func (f Fault) Build(dir string) (program string, err error) {
	overlay, err := f.Overlay(dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "dynmcp")
	if err := programs.Go(nil, "build", "-overlay", overlay, "-o", program, "./cmd/dynmcp"); err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	return program, nil
}

// Overlay writes a file with the fault for go build -overlay to dir.
func (f Fault) Overlay(dir string) (file string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	changed, err := f.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range changed {
		path := filepath.Join(root, name)
		replace[path] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}

// Apply returns the changed texts of the files of the module in root, by name.
func (f Fault) Apply(root string) (changed map[string]string, err error) {
	changed = map[string]string{}
	for _, e := range f.Edits {
		if changed[e.File] == "" {
			text, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			changed[e.File] = string(text)
		}
		if n := strings.Count(changed[e.File], e.Old); n != 1 {
			return nil, fmt.Errorf("%s: %q is in %s %d times, want once: update the fault", f.Name, e.Old, e.File, n)
		}
		changed[e.File] = strings.Replace(changed[e.File], e.Old, e.New, 1)
	}
	return changed, nil
}

// Judge fails v unless of, the verdict of a run with the fault, has found it.
func (f Fault) Judge(v, of *verdict.Verdict) {
	for _, failure := range of.Failures {
		if strings.Contains(failure, f.Found) {
			fmt.Printf("found, as it must be: %s: %s\n", f.Name, failure)
			return
		}
	}
	v.Fail("%s was not found: no failure has %q in %q", f.Name, f.Found, of.Failures)
}

// Faults of dynmcp for several verdicts.
var (
	LostAnswer = Fault{
		Name: "each server loses one answer",
		Edits: []Edit{{"transports/upstream/receive.go", "	id, ok := transports.ParseID(m.ID)\n	var err error\n",
			"	id, ok := transports.ParseID(m.ID)\n	var err error\n	if ok && id == 24 {\n		return\n	}\n"}},
	}
	LeftProcess = Fault{
		Name: "a process outlives dynmcp",
		Edits: []Edit{
			{"cmd/dynmcp/main.go", "	process.NoCore()\n", "	process.NoCore()\n	_ = exec.Command(\"sleep\", \"300\").Start()\n"},
			{"cmd/dynmcp/main.go", "	\"os\"\n", "	\"os\"\n	\"os/exec\"\n"},
		},
		Found: "processes left",
	}
	LeftGoroutine = Fault{
		Name:  "each call leaves a goroutine",
		Edits: []Edit{{"transports/upstream/start.go", "	id, err := c.register(call)\n", "	go func() { select {} }()\n	id, err := c.register(call)\n"}},
		Found: "goroutines",
	}
)
