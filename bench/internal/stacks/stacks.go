// Package stacks reads what a Go program prints of its goroutines when SIGQUIT
// ends it. It is how goroutines are counted from outside: the program needs no
// port and no code for it.
package stacks

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Count is how many goroutines do the same: the key is who started them and
// the outermost functions of their stack, which do not change while they run.
// Those that the runtime started for itself are left out; they come and go.
type Count map[string]int

// header begins a goroutine. Number 0 is the scheduler's, which is no goroutine.
var header = regexp.MustCompile(`^goroutine [1-9][0-9]*\b.*\[.*\]:$`)

// Parse reads the goroutines from what a program wrote to stderr at its end.
func Parse(text string) Count {
	all := Count{}
	var stack []string
	inside := false
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case header.MatchString(line):
			inside, stack = true, nil
		case inside && line == "":
			inside = false
			all.add(stack)
		case inside && !strings.HasPrefix(line, "\t"):
			stack = append(stack, function(line))
		}
	}
	return all
}

// add counts a goroutine. Its stack begins with the innermost function.
func (c Count) add(stack []string) {
	const outermost = 3 // functions, with who started it
	if len(stack) == 0 || strings.HasPrefix(stack[len(stack)-1], "created by runtime.") {
		return
	}
	stack = slices.DeleteFunc(stack, func(f string) bool { return strings.HasPrefix(f, "runtime.") })
	if len(stack) == 1 && stack[0] == "created by time.goFunc" {
		return // the function of a timer, which has not begun or has returned
	}
	c[strings.Join(stack[max(0, len(stack)-outermost):], " < ")]++
}

// function takes from a line what differs between goroutines that do the same:
// arguments and numbers.
func function(line string) string {
	if name, ok := strings.CutPrefix(line, "created by "); ok {
		name, _, _ = strings.Cut(name, " in goroutine ")
		return "created by " + name
	}
	if i := strings.LastIndexByte(line, '('); i > 0 {
		return line[:i]
	}
	return line
}

// Total is the number of goroutines.
func (c Count) Total() int {
	n := 0
	for _, same := range c {
		n += same
	}
	return n
}

// Difference lists the stacks of which two counts hold different numbers, one a
// line, those that grew most first.
func Difference(before, after Count) string {
	stacks := slices.Collect(maps.Keys(after))
	for stack := range before {
		if after[stack] == 0 {
			stacks = append(stacks, stack)
		}
	}
	slices.SortFunc(stacks, func(a, b string) int {
		return cmp.Or(cmp.Compare(after[b]-before[b], after[a]-before[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, stack := range stacks {
		if before[stack] != after[stack] {
			fmt.Fprintf(&text, "  %d, then %d: %s\n", before[stack], after[stack], stack)
		}
	}
	return text.String()
}
