package schema

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// secretReference matches a reference to a secret. ${file:-x} is a variable with a
// default.
var secretReference = lazyregexp.New(`^\$\{(?:keyring|cmd|file):[^-]`)

func isSecretReference(reference string) bool { return secretReference().MatchString(reference) }

// A secret is what a reference to one led to.
type secret struct{ value, problem, hint string }

// maxAsked is how many secrets are asked for at once.
const maxAsked = 8

// findSecrets asks for all secrets that a document refers to. Those of disabled servers
// and of needless ones are left out.
func (r *reading) findSecrets(root *syntax.Node) map[string]secret {
	if r.files.opts.Secret == nil {
		return nil
	}
	references := interpolatedReferences(r, root)
	answers := make([]secret, len(references))
	var group errgroup.Group
	group.SetLimit(maxAsked)
	for i, reference := range references {
		group.Go(func() error {
			answers[i].value, answers[i].problem, answers[i].hint = r.files.opts.Secret(reference[2 : len(reference)-1])
			return nil
		})
	}
	_ = group.Wait()
	found := map[string]secret{}
	for i, reference := range references {
		found[reference] = answers[i]
	}
	return found
}

// interpolatedReferences returns the references of a document that are replaced, each once.
// With Only those of the gateway are not.
func interpolatedReferences(r *reading, root *syntax.Node) (references []string) {
	for _, m := range root.Members {
		if !slices.Contains(interpolated, m.Key) || m.Key == "gateway" && r.files.opts.Only != nil {
			continue
		}
		for _, reference := range secretReferences(r.needless, m.Value) {
			if !slices.Contains(references, reference) {
				references = append(references, reference)
			}
		}
	}
	return references
}

// secretReferences returns the references to secrets in n and below it, but for what is
// needless.
func secretReferences(needless map[syntax.Pos]bool, n *syntax.Node) []string {
	var all []string
	if disabled := n.Get("disabled"); disabled != nil && disabled.Scalar == "true" || n.Kind == syntax.Object && needless[n.At] {
		return nil
	}
	if n.Kind == syntax.Text {
		for rest := n.Scalar; rest != ""; {
			var reference string
			if _, reference, rest = nextReference(rest); isSecretReference(reference) && !hasReference(reference[1:]) {
				all = append(all, reference)
			}
		}
	}
	for _, item := range n.Items {
		all = append(all, secretReferences(needless, item)...)
	}
	for _, m := range n.Members {
		if !needless[m.At] {
			all = append(all, secretReferences(needless, m.Value)...)
		}
	}
	return all
}

// replaceSecret returns the value of a reference to a secret.
func (e *expansion) replaceSecret(reference string, found map[string]secret) string {
	e.expanded = true
	s, asked := found[reference]
	switch {
	case hasReference(reference[1:]):
		e.nested = "a reference"
	case !asked:
		e.unasked = true
	case s.problem != "":
		e.failed = append(e.failed, s)
	default:
		e.secrets = append(e.secrets, s.value)
		return s.value
	}
	return reference
}

// secretsOf notes the secrets of a text, and those that it lacks.
func (e *expander) secretsOf(n *syntax.Node, path string, x expansion) {
	for _, value := range x.secrets {
		e.secret(value)
	}
	for _, s := range x.failed {
		if e.failed == nil {
			e.fail(n.At, path, s.problem, s.hint)
		} else {
			*e.failed = append(*e.failed, s)
		}
	}
}
