package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/tokens"
)

// A task is something for a model to do, in steps.
type task struct {
	words string
	steps []step
}

// A step is one query of a task, and the tools that do it.
type step struct {
	query string
	tools []string
}

// thirtyTasks reads the tasks of bench/finding.
func thirtyTasks(t testing.TB) (tasks []task) {
	t.Helper()
	text, err := os.ReadFile("../bench/finding/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		query, tools, isStep := strings.Cut(line, "|")
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isStep:
			last := &tasks[len(tasks)-1]
			last.steps = append(last.steps, step{strings.TrimSpace(query), strings.Fields(tools)})
		default:
			tasks = append(tasks, task{words: line})
		}
	}
	return tasks
}

// TestThirtyTasks simulates a model that follows the description: it searches for all steps
// of a task at once, and calls what is defined in the answer. A step whose tool is not
// defined there takes a third round trip.
func TestThirtyTasks(t *testing.T) {
	t.Parallel()
	v := realCatalog(t).View()
	two, tasks := 0, thirtyTasks(t)
	var sizes []int
	for _, task := range tasks {
		var queries []string
		for _, s := range task.steps {
			queries = append(queries, s.query)
		}
		text := v.Texts().Found(Search{Queries: queries})
		sizes = append(sizes, tokens.Count(text))
		missing := slices.DeleteFunc(slices.Clone(task.steps), func(s step) bool {
			return slices.ContainsFunc(s.tools, func(name string) bool { return strings.Contains(text, "\nName: "+name+"\n") })
		})
		if len(missing) == 0 {
			two++
		} else {
			t.Logf("%s is not done in two: %v", task.words, missing)
		}
	}
	slices.Sort(sizes)
	p50, most := sizes[len(sizes)/2], sizes[len(sizes)-1]
	t.Logf("%d of %d tasks in two round trips, tokens of an answer: median %d, worst %d", two, len(tasks), p50, most)
	if len(tasks) != 30 || two < 28 || p50 > 500 || most > 1500 {
		t.Error("want 28 of 30 tasks in two round trips, by answers of 500 tokens (median), 1500 at most")
	}
}

// TestStepsFindMore searches for each step of a task by itself.
func TestStepsFindMore(t *testing.T) {
	t.Parallel()
	v, ids, questions := labelled(t, "livemcpbench")
	steps := readSteps(t)
	var five, named float64
	for _, q := range questions {
		queries := steps[q.ID[:8]]
		if len(queries) == 0 {
			t.Fatalf("no steps of %s", q.ID)
		}
		got := map[string]bool{}
		for _, query := range queries {
			found, _ := v.Find(query, 5)
			for _, m := range found {
				for _, tool := range append([]*Tool{m.Tool}, m.Also...) {
					got[ids[tool.Name]] = true
				}
			}
		}
		five += share(q.Gold, func(id string) bool { return got[id] })
		text := v.Texts().Found(Search{Queries: queries})
		named += share(q.Gold, func(id string) bool {
			return got[id] || strings.Contains(text, id[strings.LastIndexByte(id, '/')+1:])
		})
	}
	n := float64(len(questions))
	t.Logf("needed tools among the first five of a step: %.3f, named in the answer: %.3f", five/n, named/n)
	if five/n < .73 || named/n < .76 {
		t.Error("want .73 and .76")
	}
}

// share returns the share of needed tools for which an acceptable id is there.
func share(gold [][]string, has func(id string) bool) float64 {
	hit := 0.0
	for _, ok := range gold {
		if slices.ContainsFunc(ok, has) {
			hit++
		}
	}
	return hit / float64(len(gold))
}

// readSteps reads the queries of a model by the first eight characters of the question's id.
// They were written from the questions alone.
func readSteps(t testing.TB) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/steps.txt")
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string][]string{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		steps[lines[0]] = lines[1:]
	}
	return steps
}
