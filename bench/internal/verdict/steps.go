package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// A Step is a part of a run that can run alone.
type Step struct {
	Name string
	Run  func() error
}

// Choose returns the steps in only, a comma-separated list of names, all for "".
func Choose(only string, steps []Step) ([]Step, error) {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Name == name }) {
			return nil, fmt.Errorf("no step %q", name)
		}
	}
	if len(wanted) == 0 {
		return steps, nil
	}
	return slices.DeleteFunc(steps, func(s Step) bool { return !slices.Contains(wanted, s.Name) }), nil
}
