//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// shown lists the cluster with both programs, and counts in passed which replicas use servers of
// which.
func (u *upgrade) shown() error {
	for _, program := range []string{u.older, u.dynmcp} {
		text, err := u.command(program, "cluster", "--json")
		var state struct {
			Replicas []struct{ Name, Version string }
			Leases   []struct{ Server, Replica string }
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &state)
		}
		if err != nil || len(state.Replicas) != nodes {
			return fmt.Errorf("by the %s program: %w: %s", u.version(program), err, text)
		}
		for _, l := range state.Leases {
			for i, n := range u.replicas {
				at := slices.IndexFunc(u.replicas, func(m *node) bool { return m.name == l.Replica })
				if at >= 0 && n.name != l.Replica && u.runs[i] != u.runs[at] && program == u.dynmcp {
					u.passed[fmt.Sprintf("by replicas of the %s version at one of the %s", u.version(u.runs[i]), u.version(u.runs[at]))]++
				}
			}
		}
	}
	return nil
}
