package api

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/secrets"
)

// A Question asks for a value that a server needs.
type Question struct {
	Input
	Name     string // unique among the questions of an option
	Where    string // what it is for, for people
	Repeated bool   // several answers are allowed
	Secret   bool
}

// Answers are texts by the names of their questions, in the syntax of a config: ${…} is a
// reference.
type Answers map[string][]string

// Check returns an answer in the form that the server wants, or an error if it is invalid.
func (q Question) Check(answer string) (string, error) {
	switch {
	case strings.ContainsRune(answer, 0) || strings.ContainsAny(answer, "\r\n") && !q.Secret:
		return "", errors.New("it has a line break")
	case strings.Contains(answer, "${"):
		return answer, nil
	case len(q.Choices) > 0 && !slices.Contains(q.Choices, answer):
		return "", fmt.Errorf("want one of %s", strings.Join(q.Choices, ", "))
	}
	return q.format(answer)
}

// format returns an answer in the format of its question.
func (q Question) format(answer string) (string, error) {
	switch q.Format {
	case "number":
		if _, err := strconv.ParseFloat(answer, 64); err != nil {
			return "", errors.New("want a number")
		}
	case "boolean":
		switch strings.ToLower(answer) {
		case "true", "yes", "y":
			return "true", nil
		case "false", "no", "n":
			return "false", nil
		}
		return "", errors.New("want true or false")
	case "filepath":
		if rest, ok := strings.CutPrefix(answer, "~/"); ok {
			home, err := os.UserHomeDir()
			return filepath.Join(home, rest), err
		}
		return filepath.Abs(answer)
	}
	return answer, nil
}

// A MissingError names the questions that need an answer.
type MissingError struct{ Questions []Question }

func (e *MissingError) Error() string { return "it needs " + Names(e.Questions) }

// Names lists the names of questions.
func Names(questions []Question) string {
	var names []string
	for _, q := range questions {
		names = append(names, q.Name)
	}
	return strings.Join(names, ", ")
}

// A piece is a part of a text: literal text of a registry, or an answer, in which ${…} is a
// reference.
type piece struct {
	text   string
	answer bool
}

var reference = lazyregexp.New(`\$?\$\{[^}]*\}`)

// Literal returns a text as a literal of a config: each ${…} is escaped.
func Literal(text string) string {
	return reference().ReplaceAllStringFunc(text, func(found string) string { return "$" + found })
}

// encode returns pieces as a text of a config. It is an error if two pieces form a ${…} together.
func encode(pieces []piece) (string, error) {
	var b strings.Builder
	last := piece{}
	for _, p := range merged(pieces) {
		left, right := last.text, p.text
		open := strings.LastIndex(left, "${")
		if strings.HasSuffix(left, "$") && strings.IndexAny(right, "{$") == 0 || open >= 0 && !strings.Contains(left[open:], "}") {
			return "", errors.New("a value and the text before it would make a ${…} together")
		}
		if p.answer {
			b.WriteString(p.text)
		} else {
			b.WriteString(Literal(p.text))
		}
		last = p
	}
	return b.String(), nil
}

// merged joins adjacent pieces of one kind.
func merged(pieces []piece) (all []piece) {
	for _, p := range pieces {
		switch n := len(all); {
		case p.text == "":
		case n > 0 && all[n-1].answer == p.answer:
			all[n-1].text += p.text
		default:
			all = append(all, p)
		}
	}
	return all
}

// A resolver fills templates with values: it collects their questions, or takes the answers.
type resolver struct {
	answers   Answers // nil only collects questions
	questions []Question
	missing   []Question
	taken     map[string][]piece // values of variables, by their input and name
	err       error              // the first
}

func (r *resolver) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

var variable = lazyregexp.New(`\{[^{}]*\}`)

// values returns the values of a template, none if it is left out.
func (r *resolver) values(t Template, name, where string, repeated bool) (all []string) {
	secret := t.IsSecret || secrets.Named(name)
	if t.Value == "" {
		for _, p := range r.answer(Question{Input: t.Input, Name: name, Where: where, Repeated: repeated, Secret: secret}, "") {
			all = append(all, r.text([]piece{p}))
		}
		return all
	}
	asked := map[string][]piece{}
	times := 1
	for _, found := range variable().FindAllString(t.Value, -1) {
		key := strings.Trim(found, "{}")
		input, ok := t.Variables[key]
		if !ok {
			continue
		}
		input.IsRequired = input.IsRequired || t.IsRequired
		q := Question{Input: input, Name: key, Where: where, Repeated: repeated, Secret: input.IsSecret || secret || secrets.Named(key)}
		if asked[key] = r.ask(q, name); len(asked[key]) == 0 {
			if r.answers == nil {
				continue // only the questions count
			}
			return nil
		}
		times = max(times, len(asked[key]))
	}
	for i := range times {
		all = append(all, r.fill(t.Value, asked, i))
	}
	return all
}

// fill replaces the variables of a template by their values: by value i of a repeated variable.
func (r *resolver) fill(text string, values map[string][]piece, i int) string {
	var pieces []piece
	at := 0
	for _, found := range variable().FindAllStringIndex(text, -1) {
		of := values[text[found[0]+1:found[1]-1]]
		if len(of) == 0 {
			continue // it stays as it is
		}
		pieces = append(pieces, piece{text[at:found[0]], false}, of[min(i, len(of)-1)])
		at = found[1]
	}
	return r.text(append(pieces, piece{text[at:], false}))
}

func (r *resolver) text(pieces []piece) string {
	text, err := encode(pieces)
	if err != nil {
		r.fail(err)
	}
	return text
}

// ask returns the answers to a question about a variable of the input within. A variable that
// the input has twice is asked for once.
func (r *resolver) ask(q Question, within string) []piece {
	key := within + "\x00" + q.Name
	if known, ok := r.taken[key]; ok {
		return known
	}
	if r.taken == nil {
		r.taken = map[string][]piece{}
	}
	answers := r.answer(q, within)
	r.taken[key] = answers
	return answers
}

func (r *resolver) answer(q Question, within string) (all []piece) {
	if q.Value != "" {
		return []piece{{q.Value, false}}
	}
	q.Name = r.free(q.Name, within)
	q.Description, q.Placeholder = line(q.Description, 300), line(q.Placeholder, 100)
	r.questions = append(r.questions, q)
	all = r.given(q)
	switch {
	case len(all) > 0:
	case q.Default != "":
		if len(q.Choices) > 0 && !slices.Contains(q.Choices, q.Default) {
			r.fail(fmt.Errorf("%s: its default is not among its choices", q.Name))
		}
		for _, text := range q.defaults {
			all = append(all, piece{text, false})
		}
		if all == nil {
			all = []piece{{q.Default, false}}
		}
	case q.IsRequired:
		r.missing = append(r.missing, q)
	}
	return all
}

// given returns the answers that were given.
func (r *resolver) given(q Question) (all []piece) {
	given := r.answers[q.Name]
	if len(given) > 1 && !q.Repeated {
		r.fail(fmt.Errorf("%s takes one value", q.Name))
	}
	for _, answer := range given {
		checked, err := q.Check(answer)
		if err != nil {
			r.fail(fmt.Errorf("%s: %w", q.Name, err))
		}
		all = append(all, piece{checked, true})
	}
	return all
}

// free returns a name that no other question has.
func (r *resolver) free(name, within string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(r.questions, func(q Question) bool { return q.Name == name })
	}
	if name = line(name, 60); taken(name) && within != "" {
		name = within + "." + name
	}
	first := name
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s#%d", first, i)
	}
	return name
}
