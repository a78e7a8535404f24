package main

import "testing"

// The faults edit source files, which may have changed.
func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range faults {
		if _, err := f.Apply("../.."); err != nil {
			t.Error(err)
		}
	}
}
