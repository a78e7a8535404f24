// Package sabotage builds dynmcp with a fault in it, to see that a verdict finds it. The
// fault is in no file: go build -overlay puts it into the build alone.
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

// A Fault is what is changed, and what a verdict has to say of it.
type Fault struct {
	Name  string
	Edits []Edit
	Found string // is in a failure of the verdict
}

// An Edit replaces a text of a file of the module, where it is once.
type Edit struct{ File, Old, New string }

// Build builds dynmcp with the fault, in the module that the working directory is the root
// of, and returns the program. The directory is the caller's to remove.
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

// Overlay writes a file for go build -overlay that has the fault, to a directory of the caller.
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

// Apply returns the files of the module below root that the fault changes, as it leaves them.
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
			return nil, fmt.Errorf("%s: %q is in %s %d times, must be there once: the fault has to be brought up to date", f.Name, e.Old, e.File, n)
		}
		changed[e.File] = strings.Replace(changed[e.File], e.Old, e.New, 1)
	}
	return changed, nil
}

// Judge fails v unless a verdict of a run with the fault found it.
func (f Fault) Judge(v, of *verdict.Verdict) {
	for _, failure := range of.Failures {
		if strings.Contains(failure, f.Found) {
			fmt.Printf("found, as it must be: %s: %s\n", f.Name, failure)
			return
		}
	}
	v.Fail("%s was not found: no failure says %q of %q", f.Name, f.Found, of.Failures)
}

// Faults of dynmcp that more than one verdict has to find.
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
