//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/natskv"
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

// look collects the fields of the records that each version writes.
func (u *upgrade) look() error {
	store, err := natskv.Open(natskv.StoreOptions{URLs: strings.Split(u.stores(), ","), Name: "proof"})
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	bucket, err := store.Bucket(ctx, "state")
	if err != nil {
		return err
	}
	list, err := records.List(ctx, bucket, "")
	if err != nil {
		return err
	}
	fields := map[string]map[string]any{} // of records, by key
	program := map[string]string{}        // of members, by ID
	for key, e := range list {
		var of map[string]any
		if err := json.Unmarshal(e.Value, &of); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		fields[key] = of
		if id, ok := strings.CutPrefix(key, "member/"); ok {
			program[id] = "present"
			if of["version"] == other {
				program[id] = "previous"
			}
		}
	}
	for key, of := range fields {
		kind, id, _ := strings.Cut(key, "/")
		if owner, ok := of["owner"].(string); ok {
			id = owner
		}
		if program[id] == "" {
			continue // it is gone
		}
		for name, value := range of {
			field := fmt.Sprintf("%s of a %s, as a %s", name, kind, kindOf(value))
			if u.written[field] == nil {
				u.written[field] = map[string]bool{}
			}
			u.written[field][program[id]] = true
		}
	}
	return nil
}

// kindOf returns the type of a JSON value.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "null"
}

// differences prints the fields of records that only one version writes.
func (u *upgrade) differences() {
	same := true
	for _, field := range slices.Sorted(maps.Keys(u.written)) {
		for program := range u.written[field] {
			if len(u.written[field]) == 1 {
				same = false
				fmt.Printf("  only the %s version writes %s\n", program, field)
			}
		}
	}
	if same {
		fmt.Println("  records of members and leases have the same fields in both versions")
	}
}
