package main

import "testing"

// The edits of the faults apply to the present sources.
func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range faultsToFind() {
		if _, err := f.Apply("../.."); err != nil {
			t.Error(err)
		}
	}
}
