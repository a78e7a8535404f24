package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A task is done with single calls, whose texts are evaluated here as a model would, and by
// a script, whose args[0] is the directory of the world. Both return the same answer.
type task struct {
	name   string
	npm    bool
	calls  func(h *host, w world) (string, error)
	script string
}

var tasks = []task{
	{"count three words in 30 issues", false, countWords, `
const {issues} = await tools.tracker.list_issues({});
const all = await Promise.all(issues.map(i => tools.tracker.get_issue({number: i.number})));
return ["crash", "timeout", "leak"].map(w => all.filter(i => i.body.includes(w)).length).join(" ");`},
	{"who comments most", false, whoComments, `
const {issues} = await tools.tracker.list_issues({});
const all = await Promise.all(issues.map(i => tools.tracker.list_comments({number: i.number})));
const n = {};
for (const c of all.flatMap(a => a.comments)) n[c.author] = (n[c.author] ?? 0) + 1;
return Object.keys(n).sort((a, b) => n[b] - n[a] || (a < b ? -1 : 1))[0];`},
	{"label what has no label", false, labelIssues, `
const todo = (await tools.tracker.list_issues({})).issues.filter(i => !i.labels.length);
await Promise.all(todo.map(i => tools.tracker.add_label({number: i.number, label: "triage"})));
return todo.length + " labelled";`},
	{"which of 12 issues are there", false, whichAreThere, `
const found = [];
for (let n = 25; n < 37; n++) try { await tools.tracker.get_issue({number: n}); found.push(n); } catch {}
return found.join(" ");`},
	{"notes with a TODO", true, notesWithTodo, `
const names = (await tools.files.list_directory({path: args[0]})).content.match(/note\d+\.md/g);
const texts = await Promise.all(names.map(n => tools.files.read_text_file({path: args[0] + "/" + n})));
return names.filter((n, i) => texts[i].content.includes("TODO")).join(" ");`},
	{"copy ten notes under a heading", true, copyNotes, `
for (let i = 0; i < 10; i++) {
  const {content} = await tools.files.read_text_file({path: args[0] + "/note0" + i + ".md"});
  await tools.files.write_file({path: args[0] + "/out/" + i + ".md", content: "# Note " + i + "\n" + content});
}
return "10 copied";`},
	{"the largest note", true, largestNote, `
const names = (await tools.files.list_directory({path: args[0]})).content.match(/note\d+\.md/g);
const infos = await Promise.all(names.map(n => tools.files.get_file_info({path: args[0] + "/" + n})));
const size = infos.map(i => +i.content.match(/size: (\d+)/)[1]);
return names[size.indexOf(Math.max(...size))];`},
	{"one note", true, oneNote, `
const name = (await tools.files.list_directory({path: args[0]})).content.match(/note\d+\.md/)[0];
return (await tools.files.read_text_file({path: args[0] + "/" + name})).content.split(" ")[0];`},
	{"remember twelve issues", true, rememberIssues, `
for (let n = 1; n <= 12; n++) {
  const i = await tools.tracker.get_issue({number: n});
  await tools.memory.create_entities({entities: [{name: "issue " + n, entityType: "issue", observations: [i.body]}]});
}
return "12 remembered";`},
	{"search the memory for ten words", true, searchMemory, `
const words = ["crash", "timeout", "leak", "deadlock", "config", "merge", "branch", "release", "memory", "slow"];
const found = await Promise.all(words.map(w => tools.memory.search_nodes({query: w})));
return found.map(f => f.entities.length).join(" ");`},
	{"add forty numbers", true, addNumbers, `
let n = 0;
for (let i = 1; i <= 40; i++) n = +(await tools.everything["get-sum"]({a: n, b: i})).match(/is (\d+)/)[1];
return String(n);`},
	{"commits that mention a deadlock", true, commitsWithDeadlock, `
const {commits} = await tools.git.git_log({path: args[0], maxCount: 15});
const all = await Promise.all(commits.map(c => tools.git.git_show({path: args[0], object: c.hash})));
return String(all.filter(s => s.content.includes("deadlock")).length);`},
}

// read parses the text of a result.
func read[T any](text string) (v T, err error) {
	if err = json.Unmarshal([]byte(text), &v); err != nil {
		err = fmt.Errorf("%w: %.200s", err, text)
	}
	return v, err
}

// numbers returns arguments with consecutive numbers.
func numbers(from, to int) (all []arguments) {
	for n := from; n <= to; n++ {
		all = append(all, arguments{"number": n})
	}
	return all
}

func (h *host) issues() ([]issue, error) {
	text, err := h.use("tracker/list_issues", arguments{})
	if err != nil {
		return nil, err
	}
	page, err := read[struct{ Issues []issue }](text)
	return page.Issues, err
}

func countWords(h *host, _ world) (string, error) {
	list, err := h.issues()
	if err != nil {
		return "", err
	}
	texts, err := h.each("tracker/get_issue", numbers(1, len(list)))
	var counts []string
	for _, word := range []string{"crash", "timeout", "leak"} {
		n := 0
		for _, text := range texts {
			i, err := read[issue](text)
			if err != nil {
				return "", err
			}
			if strings.Contains(i.Body, word) {
				n++
			}
		}
		counts = append(counts, fmt.Sprint(n))
	}
	return strings.Join(counts, " "), err
}

func whoComments(h *host, _ world) (string, error) {
	list, err := h.issues()
	if err != nil {
		return "", err
	}
	texts, err := h.each("tracker/list_comments", numbers(1, len(list)))
	n := map[string]int{}
	for _, text := range texts {
		all, err := read[struct{ Comments []comment }](text)
		if err != nil {
			return "", err
		}
		for _, one := range all.Comments {
			n[one.Author]++
		}
	}
	names := slices.Sorted(maps.Keys(n))
	slices.SortStableFunc(names, func(a, b string) int { return n[b] - n[a] })
	return strings.Join(names[:min(1, len(names))], ""), err
}

func labelIssues(h *host, _ world) (string, error) {
	list, err := h.issues()
	if err != nil {
		return "", err
	}
	var todo []arguments
	for _, i := range list {
		if len(i.Labels) == 0 {
			todo = append(todo, arguments{"number": i.Number, "label": "triage"})
		}
	}
	_, err = h.each("tracker/add_label", todo)
	return fmt.Sprintf("%d labelled", len(todo)), err
}

func whichAreThere(h *host, _ world) (string, error) {
	texts, err := h.each("tracker/get_issue", numbers(25, 36))
	var found []string
	for i, text := range texts {
		if !strings.Contains(text, "there is no issue") {
			found = append(found, fmt.Sprint(25+i))
		}
	}
	return strings.Join(found, " "), err
}

var noteName = regexp.MustCompile(`note\d+\.md`)

// ofNotes calls a tool for each note.
func (h *host) ofNotes(w world, tool string, most int) (names, texts []string, err error) {
	list, err := h.use("files/list_directory", arguments{"path": w.dir})
	if err != nil {
		return nil, nil, err
	}
	names = noteName.FindAllString(list, most)
	var all []arguments
	for _, name := range names {
		all = append(all, arguments{"path": filepath.Join(w.dir, name)})
	}
	texts, err = h.each(tool, all)
	return names, texts, err
}

func notesWithTodo(h *host, w world) (string, error) {
	names, texts, err := h.ofNotes(w, "files/read_text_file", -1)
	var with []string
	for i, text := range texts {
		if strings.Contains(text, "TODO") {
			with = append(with, names[i])
		}
	}
	return strings.Join(with, " "), err
}

func copyNotes(h *host, w world) (string, error) {
	for i := range 10 {
		text, err := h.use("files/read_text_file", arguments{"path": filepath.Join(w.dir, fmt.Sprintf("note%02d.md", i))})
		if err != nil {
			return "", err
		}
		if _, err := h.use("files/write_file", arguments{"path": filepath.Join(w.dir, "out", fmt.Sprintf("%d.md", i)), "content": fmt.Sprintf("# Note %d\n%s", i, text)}); err != nil {
			return "", err
		}
	}
	return "10 copied", nil
}

var sizeOf = regexp.MustCompile(`size: (\d+)`)

func largestNote(h *host, w world) (string, error) {
	names, texts, err := h.ofNotes(w, "files/get_file_info", -1)
	largest, most := "", 0
	for i, text := range texts {
		var size int
		if m := sizeOf.FindStringSubmatch(text); m != nil {
			_, _ = fmt.Sscan(m[1], &size) // m[1] has only digits
		}
		if size > most {
			largest, most = names[i], size
		}
	}
	return largest, err
}

func oneNote(h *host, w world) (string, error) {
	_, texts, err := h.ofNotes(w, "files/read_text_file", 1)
	if err != nil || len(texts) == 0 {
		return "", err
	}
	first, _, _ := strings.Cut(texts[0], " ")
	return first, nil
}

func rememberIssues(h *host, _ world) (string, error) {
	for n := 1; n <= 12; n++ {
		text, err := h.use("tracker/get_issue", arguments{"number": n})
		if err != nil {
			return "", err
		}
		i, err := read[issue](text)
		if err != nil {
			return "", err
		}
		entity := arguments{"name": fmt.Sprintf("issue %d", n), "entityType": "issue", "observations": []string{i.Body}}
		if _, err := h.use("memory/create_entities", arguments{"entities": []arguments{entity}}); err != nil {
			return "", err
		}
	}
	return "12 remembered", nil
}

func searchMemory(h *host, _ world) (string, error) {
	var all []arguments
	for _, word := range []string{"crash", "timeout", "leak", "deadlock", "config", "merge", "branch", "release", "memory", "slow"} {
		all = append(all, arguments{"query": word})
	}
	texts, err := h.each("memory/search_nodes", all)
	var counts []string
	for _, text := range texts {
		found, err := read[struct{ Entities []any }](text)
		if err != nil {
			return "", err
		}
		counts = append(counts, fmt.Sprint(len(found.Entities)))
	}
	return strings.Join(counts, " "), err
}

var sumOf = regexp.MustCompile(`is (\d+)`)

func addNumbers(h *host, _ world) (string, error) {
	sum := "0"
	for i := 1; i <= 40; i++ {
		text, err := h.use("everything/get-sum", arguments{"a": json.Number(sum), "b": i})
		if err != nil {
			return "", err
		}
		m := sumOf.FindStringSubmatch(text)
		if m == nil {
			return "", fmt.Errorf("no sum in %q", text)
		}
		sum = m[1]
	}
	return sum, nil
}

func commitsWithDeadlock(h *host, w world) (string, error) {
	text, err := h.use("git/git_log", arguments{"path": w.dir, "maxCount": 15})
	if err != nil {
		return "", err
	}
	log, err := read[struct{ Commits []struct{ Hash string } }](text)
	if err != nil {
		return "", err
	}
	var all []arguments
	for _, commit := range log.Commits {
		all = append(all, arguments{"path": w.dir, "object": commit.Hash})
	}
	texts, err := h.each("git/git_show", all)
	n := 0
	for _, text := range texts {
		if strings.Contains(text, "deadlock") {
			n++
		}
	}
	return fmt.Sprint(n), err
}
