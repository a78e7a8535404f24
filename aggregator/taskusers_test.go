package aggregator

import (
	"fmt"
	"testing"
)

// Whose tasks are is forgotten of the user with the most when there are too many of all.
func TestTasksOfAllUsersHaveABound(t *testing.T) {
	var u taskUsers
	u.add(principal{"few"}, "few", true)
	for i := range maxTasks + 10_000 {
		u.add(principal{fmt.Sprint("user", i%100)}, fmt.Sprint(i), true)
	}
	if len(u.byTask) != maxTasks || u.count != maxTasks {
		t.Errorf("%d tasks are known, %d counted, want %d", len(u.byTask), u.count, maxTasks)
	}
	if _, known := u.get("few"); !known {
		t.Error("the task of a user with few is forgotten")
	}
	for of := range u.tasks {
		if len(u.tasks[of]) > maxTasks/100+1 {
			t.Errorf("%s has %d tasks", of.name, len(u.tasks[of]))
		}
	}
}
