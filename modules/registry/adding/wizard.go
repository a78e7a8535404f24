package adding

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

// A wizard asks questions on a terminal.
type wizard struct {
	cmd         *cobra.Command
	out, errOut *terminal.Writer
	ask         bool // false takes defaults
}

// choose returns the option to add, from those of via if it is not empty: the only one that can be
// run here, the one that is picked on the terminal, or else the first.
func (w *wizard) choose(options []*api.Option, via string) (*api.Option, error) {
	if via != "" {
		options = slices.DeleteFunc(slices.Clone(options), func(o *api.Option) bool { return o.Via != via })
	}
	var lack []string
	can := slices.DeleteFunc(slices.Clone(options), func(o *api.Option) bool {
		if o.Missing != "" {
			lack = append(lack, fmt.Sprintf("%s %s: %s", o.Via, o.What, o.Missing))
		}
		return o.Missing != ""
	})
	switch {
	case len(options) == 0 && via != "":
		return nil, hint.With(fmt.Errorf("it is not offered via %s", via), "dynmcp search shows how it can be run")
	case len(options) == 0:
		return nil, errors.New("it names no package and no remote")
	case len(can) == 0:
		return nil, hint.With(errors.New("it cannot be run here"), "%s", strings.Join(lack, "\n      "))
	case len(can) == 1 || !w.ask:
		return can[0], nil
	}
	return w.pick(can)
}

// pick asks which option to take. An empty line takes the first.
func (w *wizard) pick(can []*api.Option) (*api.Option, error) {
	for i, o := range can {
		w.errOut.Printf("%d  %s  %s\n", i+1, o.Via, o.What)
	}
	for {
		answer, err := w.line(fmt.Sprintf("Which one? [1-%d] ", len(can)))
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(can) {
			return can[n-1], nil
		}
		if answer == "" {
			return can[0], nil
		}
	}
}

// line asks for a line.
func (w *wizard) line(prompt string) (string, error) {
	w.errOut.Printf("%s", prompt)
	answer, err := bufio.NewReader(w.cmd.InOrStdin()).ReadString('\n')
	if err != nil && answer == "" {
		return "", errors.New("nothing was added")
	}
	return strings.TrimSpace(answer), nil
}

// askAll asks the unanswered questions. An empty line takes the default, or skips the question.
func (w *wizard) askAll(questions []api.Question, answers api.Answers) error {
	for _, q := range questions {
		for len(answers[q.Name]) == 0 || q.Repeated {
			answer, err := w.question(q, len(answers[q.Name]) > 0)
			if err != nil {
				return err
			}
			if answer == "" {
				break
			}
			answers[q.Name] = append(answers[q.Name], answer)
		}
	}
	return nil
}

// question asks until the answer is valid. again means that a repeated question has an answer
// already.
func (w *wizard) question(q api.Question, again bool) (string, error) {
	prompt := q.Name
	if q.Default != "" {
		prompt += fmt.Sprintf(" [%s]", terminal.OneLine(q.Default))
	} else if !q.IsRequired || again {
		prompt += " [none]"
	}
	if text := about(q); text != "" && !again {
		w.errOut.Say("%s", text)
	}
	for {
		answer, err := w.read(q, prompt+": ")
		switch {
		case err != nil:
			return "", err
		case answer == "" && (!q.IsRequired || q.Default != "" || again):
			return "", nil
		case answer == "":
			w.errOut.Printf("it is needed\n")
			continue
		}
		if _, err := q.Check(answer); err != nil {
			w.errOut.Printf("%v\n", err)
			continue
		}
		return answer, nil
	}
}

// read reads an answer. Secrets are read without echo.
func (w *wizard) read(q api.Question, prompt string) (string, error) {
	in := cli.Terminal(w.cmd)
	if !q.Secret || in == nil {
		return w.line(prompt)
	}
	text, err := secret.ReadUnseen(w.cmd.Context(), int(in.Fd()), w.errOut, prompt)
	cli.Secrets.Add(string(text))
	return strings.TrimSpace(string(text)), err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
