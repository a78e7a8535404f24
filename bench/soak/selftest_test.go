package main

import "testing"

// The faults are edits of source files, which move.
func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range faultsToFind() {
		if _, err := f.Apply("../.."); err != nil {
			t.Error(err)
		}
	}
}
