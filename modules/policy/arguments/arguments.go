// Package arguments decides whether the arguments of a call satisfy the JSON Schema of a rule.
// The schema names the type of each value that it judges, so that a value of another type, which
// a server may convert, does not satisfy it. Arguments of which parsers read different values are
// neither accepted nor rejected: they are ambiguous.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/strictjson"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Schema is a compiled schema for arguments.
type Schema struct {
	resolved *jsonschema.Resolved
	names    map[string]string // the names of members in it, by their form for lax readers
	exact    map[string]bool
	patterns []pattern
}

// A pattern is a name in patternProperties.
type pattern struct{ exact, lax *regexp.Regexp }

// A Mistake is a part of a schema that cannot judge arguments.
type Mistake struct {
	Path []string // keys and indices
	Text string
	Hint string // what to write
	Type string // the type that is missing, if that is the mistake
}

// Mistakes are all mistakes of a schema.
type Mistakes []Mistake

func (ms Mistakes) Error() string {
	var all []string
	for _, m := range ms {
		all = append(all, strings.Join(m.Path, ".")+": "+m.Text)
	}
	return strings.Join(all, "\n")
}

// Compile reads a schema. Its errors are [Mistakes]. A keyword that is not checked is one, because
// a rule that is not checked would let everything pass.
func Compile(raw json.RawMessage) (*Schema, error) {
	root, err := decode(raw)
	if err != nil {
		return nil, Mistakes{{Text: err.Error(), Hint: "write a JSON Schema that holds for the arguments of the calls meant"}}
	}
	c := &checker{root: root, done: map[visit]bool{}, into: &Schema{names: map[string]string{}, exact: map[string]bool{}}}
	c.place(root, nil, true)
	if c.mistakes != nil {
		return nil, c.mistakes
	}
	if c.into.resolved, err = root.Resolve(nil); err != nil {
		return nil, Mistakes{{Text: fmt.Sprintf("this schema cannot be used: %v", err), Hint: "write a JSON Schema of 2020-12, with patterns of Go"}}
	}
	return c.into, nil
}

func decode(raw json.RawMessage) (root *jsonschema.Schema, err error) {
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("this is no JSON Schema: %w", err)
	}
	if !wire.IsObject(raw) {
		return nil, errors.New("a schema is an object")
	}
	value, err := strictjson.Value(raw)
	if err != nil {
		return nil, err
	}
	return root, exactNumbers(value)
}

// maxSafe is the largest integer whose neighbours all parsers tell apart.
const maxSafe = 1<<53 - 1

// exactNumbers refuses integers that some parsers round: a value beside it would be read as it.
func exactNumbers(value any) error {
	switch value := value.(type) {
	case int64:
		if value < -maxSafe || value > maxSafe {
			return fmt.Errorf("the number %d is too large to be read alike everywhere", value)
		}
	case uint64:
		return fmt.Errorf("the number %d is too large to be read alike everywhere", value)
	case []any:
		for _, element := range value {
			if err := exactNumbers(element); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, member := range value {
			if err := exactNumbers(member); err != nil {
				return err
			}
		}
	}
	return nil
}

// Fits reports whether the arguments of a call, raw JSON, satisfy the schema; no arguments are
// an empty object. The error says why they are ambiguous.
func (s *Schema) Fits(input json.RawMessage) (bool, error) {
	value, err := strictjson.Arguments(input)
	if err != nil {
		return false, err
	}
	if err := s.resembling(value); err != nil {
		return false, err
	}
	return s.resolved.Validate(value) == nil, nil
}

// resembling finds members that a lax reader confuses with one that the schema names: a schema
// lets members pass that it does not name.
func (s *Schema) resembling(value any) error {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := s.resembling(element); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range value {
			if err := s.resemblingName(name); err != nil {
				return err
			}
			if err := s.resembling(member); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Schema) resemblingName(name string) error {
	if s.exact[name] {
		return nil
	}
	if meant, ok := s.names[lax(name)]; ok {
		return fmt.Errorf("member %q can be taken for %q", name, meant)
	}
	for _, p := range s.patterns {
		if !p.exact.MatchString(name) && p.lax.MatchString(name) {
			return fmt.Errorf("member %q can be taken for one of %q", name, p.exact)
		}
	}
	return nil
}

// lax returns the form of a name for lax readers: they ignore case, the characters between
// words, and everything after a NUL.
func lax(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
}
