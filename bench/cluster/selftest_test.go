//go:build linux

package main

import (
	"strings"
	"testing"
)

// The step mixed builds these sources as another version.
func TestSourcesHaveAVersion(t *testing.T) {
	file, text, err := withVersion("../..", "9.8.7")
	if err != nil || !strings.Contains(string(text), `ersion = "9.8.7"`) {
		t.Errorf("got %s, %s, %v", file, text, err)
	}
}

// The edits of the faults apply to the present sources.
func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range faultsToFind() {
		if _, err := f.Apply("../.."); err != nil {
			t.Error(err)
		}
	}
}
