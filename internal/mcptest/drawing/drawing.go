// Package drawing compares the drawing of a journey in a package comment with the stacks of
// a real one. A frame of a drawing is a line "└ Type.method  what it does  [folder/file.go]";
// a line without └ begins the next stack.
package drawing

import (
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var line = regexp.MustCompile(`^//\t( *└ )?([A-Za-z]+(?:\.[A-Za-z]+)?) .* \[([a-z/_]+\.go)\]$`)

// Compare fails the test if the comments of a file draw other stacks than these.
func Compare(t *testing.T, file string, stacks ...[]string) {
	t.Helper()
	if diff := cmp.Diff(drawn(t, file), stacks); diff != "" {
		t.Errorf("%s draws other frames (-) than there are (+):\n%s", file, diff)
	}
}

// drawn returns the stacks that the comments of a file draw, each frame as "Type.method folder/file.go".
func drawn(t *testing.T, file string) (stacks [][]string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(source)) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil {
			continue
		}
		if m[1] == "" {
			stacks = append(stacks, nil)
		}
		stacks[len(stacks)-1] = append(stacks[len(stacks)-1], m[2]+" "+m[3])
	}
	return stacks
}

// self begins the names of all functions of this package, module those of the project.
var (
	self   = reflect.TypeFor[frames]().PkgPath() + "."
	module = strings.TrimSuffix(self, "internal/mcptest/drawing.")
)

// Stack returns the frames of the project on the caller's stack, from the innermost that begins
// with begin to the first below it that contains end; nil if there is no such frame.
func Stack(begin, end string) []string {
	pcs := make([]uintptr, 200)
	var all frames
	for callers := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)]); ; {
		f, more := callers.Next()
		all.add(f.Function, f.File)
		if !more {
			return all.cut(begin, end)
		}
	}
}

// Waiting returns the same of another goroutine that has such frames now.
func Waiting(begin, end string) []string {
	dump := make([]byte, 4<<20)
	dump = dump[:runtime.Stack(dump, true)]
	for goroutine := range strings.SplitSeq(string(dump), "\n\n") {
		var all frames
		lines := strings.Split(goroutine, "\n")
		for i := 1; i+1 < len(lines); i += 2 {
			if name, by := strings.CutPrefix(lines[i], "created by "); !by {
				file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), ":")
				if open := strings.LastIndex(name, "("); open > 0 {
					name = name[:open]
				}
				all.add(name, file)
			}
		}
		if found := all.cut(begin, end); found != nil {
			return found
		}
	}
	return nil
}

// frames are a stack, innermost first.
type frames []string

// add adds a function, if it is the project's and no test.
func (all *frames) add(function, file string) {
	function = strings.ReplaceAll(function, "[...]", "")
	_, name, ok := strings.Cut(path.Base(function), ".")
	if !ok || !strings.HasPrefix(function, module) || strings.HasPrefix(function, self) || strings.HasSuffix(file, "_test.go") {
		return
	}
	dir, base := path.Split(file)
	base = path.Join(path.Base(dir), base)
	name, _, _ = strings.Cut(strings.NewReplacer("(*", "", ")", "").Replace(name), ".func")
	if parts := strings.Split(name, "."); len(parts) > 2 { // a closure that is inlined has the name of its caller, too
		name = strings.Join(parts[len(parts)-2:], ".")
	}
	if frame := name + " " + base; len(*all) == 0 || (*all)[len(*all)-1] != frame { // a closure of its function
		*all = append(*all, frame)
	}
}

func (all frames) cut(begin, end string) []string {
	i := slices.IndexFunc(all, func(frame string) bool { return strings.HasPrefix(frame, begin) })
	if i < 0 {
		return nil
	}
	slices.Reverse(all)
	i = len(all) - 1 - i
	j := slices.IndexFunc(all[i:], func(frame string) bool { return strings.Contains(frame, end) })
	if j < 0 {
		return nil
	}
	return all[i : i+j+1]
}
