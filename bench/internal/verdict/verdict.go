// Package verdict is what a soak or proof says of what it counted.
package verdict

import "fmt"

// A Verdict is what went wrong so far, and what could not be tried. It is for one
// goroutine.
type Verdict struct {
	Failed   bool
	Failures []string
	skipped  []string
}

// Must fails unless a count is what it must be.
func (v *Verdict) Must(what string, got, want int) {
	if got != want {
		v.Fail("%s: %d, must be %d", what, got, want)
	}
}

// Fail says behind FAIL what is wrong.
func (v *Verdict) Fail(format string, args ...any) {
	v.Failed = true
	v.Failures = append(v.Failures, fmt.Sprintf(format, args...))
	fmt.Printf("  FAIL: %s\n", v.Failures[len(v.Failures)-1])
}

// Skip says that something cannot be run here, now and in Close.
func (v *Verdict) Skip(why string) {
	v.skipped = append(v.skipped, why)
	fmt.Println("  NOT RUN:", why)
}

// Close says once more what was not run, and reports whether all is as it must be.
func (v *Verdict) Close() bool {
	for _, what := range v.skipped {
		fmt.Println("NOT RUN:", what)
	}
	return !v.Failed
}
