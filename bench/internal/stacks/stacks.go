// Package stacks parses the stacks of goroutines that a Go program prints when SIGQUIT ends it. So the
// goroutines of a program are counted without a port or code in it.
package stacks

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Count is the number of goroutines by the outermost functions of their stacks and the function that
// started them, which do not change while they run. Goroutines of the runtime, which come and go, are
// left out.
type Count map[string]int

// header is the first line of a goroutine. Number 0 is the scheduler.
var header = regexp.MustCompile(`^goroutine [1-9][0-9]*\b.*\[.*\]:$`)

// Parse counts the goroutines in the stderr of a program that SIGQUIT has ended.
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
	const outermost = 3 // functions, including the one that started it
	if len(stack) == 0 || strings.HasPrefix(stack[len(stack)-1], "created by runtime.") {
		return
	}
	stack = slices.DeleteFunc(stack, func(f string) bool { return strings.HasPrefix(f, "runtime.") })
	if len(stack) == 1 && stack[0] == "created by time.goFunc" {
		return // the function of a timer that has not begun or has returned
	}
	c[strings.Join(stack[max(0, len(stack)-outermost):], " < ")]++
}

// function returns a line without arguments and numbers, which differ between equal goroutines.
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

// Total returns the number of goroutines.
func (c Count) Total() int {
	n := 0
	for _, same := range c {
		n += same
	}
	return n
}

// Difference lists the stacks whose numbers differ between two counts, one a line, those that grew
// most first.
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
