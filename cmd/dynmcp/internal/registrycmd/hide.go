package registrycmd

import (
	"fmt"
	"os"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/editfile"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/secret"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/registry"
	"github.com/dynmcp/dynmcp/schema"
)

// hidden are answers with references in the place of secrets, and the secrets.
type hidden struct {
	answers registry.Answers
	values  map[string]string // by their names
	env     *editfile.File    // the .env; nil is the keyring
}

// hide takes the secrets out of answers. Those that are references already stay.
func (a *Adding) hide(config *editfile.File, o *registry.Option, answers registry.Answers) (*hidden, error) {
	h := &hidden{answers: answers, values: map[string]string{}}
	questions, err := o.Questions()
	if err != nil {
		return nil, err
	}
	var set map[string]string
	opened := false
	for _, q := range questions {
		for i, value := range answers[q.Name] {
			if !q.Secret || strings.Contains(value, "${") {
				continue
			}
			if _, err := q.Check(value); err != nil {
				return nil, fmt.Errorf("%s: %w", q.Name, err)
			}
			cli.Secrets.Add(value)
			if !opened {
				if set, err = h.open(a, config); err != nil {
					return nil, err
				}
				opened = true
			}
			answers[q.Name][i] = h.name(set, a.As, q.Name, value)
		}
	}
	return h, nil
}

// open finds out where the secrets go, and what is there.
func (h *hidden) open(a *Adding, config *editfile.File) (map[string]string, error) {
	mode, err := schema.EnvMode(config.Path, config.Old)
	switch offered := keyring.Offered(); {
	case err != nil:
		return nil, err
	case mode == "disable":
		return nil, hint.With(fmt.Errorf(`%s has "env": "disable", which leaves ${NAME} as it is`, config.Name()), "change that key: no secret is written into a config")
	case a.Secrets == secret.InKeyring && offered != nil:
		return nil, hint.With(fmt.Errorf("there is no keyring: %w", offered), "--secrets env puts them into the .env beside the config")
	case a.Secrets == secret.InKeyring || a.Secrets == "" && offered == nil:
		return nil, nil
	case mode == "process":
		return nil, hint.With(fmt.Errorf(`%s takes variables from the environment alone ("env": "process")`, config.Name()), "set them there, and write --set NAME='${NAME}'")
	}
	var set map[string]string
	h.env, set, err = secret.Beside(config)
	return set, err
}

// name keeps a value under a name, and returns the reference to it.
func (h *hidden) name(set map[string]string, entry, question, value string) string {
	variable := schema.VariableName(question)
	if h.env == nil {
		variable = entry + "/" + variable
	}
	taken := func(name string) bool {
		kept, ours := h.values[name]
		old, theirs := set[name]
		return ours && kept != value || theirs && old != value
	}
	if taken(variable) && h.env != nil {
		variable = schema.VariableName(entry + "_" + question)
	}
	first := variable
	for i := 2; taken(variable); i++ {
		variable = fmt.Sprintf("%s_%d", first, i)
	}
	h.values[variable] = value
	if h.env == nil {
		return "${keyring:" + variable + "}"
	}
	return "${" + variable + "}"
}

// keep writes the secrets.
func (h *hidden) keep() error {
	if len(h.values) == 0 {
		return nil
	}
	if err := secret.Keep(h.env, h.values); err != nil {
		return err
	}
	names := strings.Join(sortedKeys(h.values), ", ")
	if h.env == nil {
		fmt.Fprintf(os.Stderr, "Put %s into the keyring: %s\n", cli.Count(len(h.values), "secret"), names)
		return nil
	}
	fmt.Fprintf(os.Stderr, "Wrote %s to %s, which only you can read; keep it out of version control\n", names, h.env.Name())
	return nil
}
