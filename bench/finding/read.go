package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
)

// A task is what a model is to do.
type task struct {
	words   string
	queries []string   // a step each
	tools   [][]string // that do the step, or servers that have them
}

// readTasks reads tasks: a line each, below which are the queries of its steps, each with what
// does it. A task of one step may be one line with that.
func readTasks(file string) (tasks []task, err error) {
	text, err := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		query, tools, isStep := strings.Cut(line, " | ")
		words := strings.TrimSpace(query)
		if words == "" || strings.HasPrefix(words, "#") {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			tasks = append(tasks, task{words: words})
		}
		if last := &tasks[len(tasks)-1]; isStep {
			last.queries, last.tools = append(last.queries, words), append(last.tools, strings.Fields(tools))
		}
	}
	return tasks, err
}

// readSteps reads what a model would search for, by the beginnings of the ids of questions:
// written by the words of these alone.
func readSteps(file string) (map[string][]string, error) {
	text, err := os.ReadFile(file)
	steps := map[string][]string{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		steps[lines[0]] = lines[1:]
	}
	return steps, err
}

// onLines are the ids of the tools that have a line in an answer, or are named on one as of
// another server.
func onLines(l *corpus.Labelled, answer string) map[string]bool {
	ids := map[string]bool{}
	for line := range strings.Lines(answer) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		ids[l.IDs[strings.TrimSuffix(name, ":")]] = true
		if _, also, ok := strings.Cut(line, "(also "); ok {
			for name := range strings.SplitSeq(strings.TrimSuffix(also, ")"), ", ") {
				ids[l.IDs[name]] = true
			}
		}
	}
	delete(ids, "")
	return ids
}

// wordsWhole are the descriptions of servers as they are.
func (b *bench) wordsWhole(config string) (map[string]string, error) {
	out, err := exec.Command(b.program, "describe-servers", "--json", "-c", config).Output()
	if err != nil {
		return nil, fmt.Errorf("dynmcp describe-servers: %w", err)
	}
	var all []struct{ Name, Description string }
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, err
	}
	whole := map[string]string{}
	for _, s := range all {
		whole[s.Name] = s.Description
	}
	return whole, nil
}

// print prints the texts of servers, and answers.
func (b *bench) print(n int) error {
	file, err := b.config("print", b.some(n), b.written)
	if err != nil {
		return err
	}
	return b.talking(file, anyHost, func(h *host) error {
		tools, err := h.tools()
		if err != nil {
			return err
		}
		fmt.Printf("# instructions, %d tokens\n%s\n", count(h.instructions), h.instructions)
		for _, t := range tools {
			fmt.Printf("\n# %s, %d tokens\n%s\n%s\n", t.Name, count(t.Name, t.Description, string(t.InputSchema)), t.Description, t.InputSchema)
		}
		for _, arguments := range []map[string]any{
			{"query": []string{"create an issue in a repository", "send a message to a channel"}},
			{"query": "take a screenshot of a web page"},
			{"tool_name": "slack/slack_post_message"},
			{"server": "slack"},
			{},
		} {
			answer, err := h.discover(arguments)
			if err != nil {
				return err
			}
			text, err := json.Marshal(arguments)
			if err != nil {
				return err
			}
			fmt.Printf("\n# discover_tool %s, %d tokens\n%s\n", text, count(answer), answer)
		}
		return nil
	})
}
