package schema

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// maxAsked is how many secrets are looked up concurrently.
const maxAsked = 8

// findSecrets looks up all secrets that a document refers to, except those of disabled and
// unselected servers.
func (r *reading) findSecrets(root *syntax.Node) map[string]reference.Secret {
	if r.files.opts.Secret == nil {
		return nil
	}
	references := interpolatedReferences(r, root)
	answers := make([]reference.Secret, len(references))
	var group errgroup.Group
	group.SetLimit(maxAsked)
	for i, asked := range references {
		group.Go(func() error {
			answers[i].Value, answers[i].Problem, answers[i].Hint = r.files.opts.Secret(asked[2 : len(asked)-1])
			return nil
		})
	}
	_ = group.Wait()
	found := map[string]reference.Secret{}
	for i, asked := range references {
		found[asked] = answers[i]
	}
	return found
}

// interpolatedReferences returns the references of a document that are replaced, each once. With
// Only, it omits those of the gateway.
func interpolatedReferences(r *reading, root *syntax.Node) (references []string) {
	for _, m := range root.Members {
		if !slices.Contains(interpolated, m.Key) || m.Key == "gateway" && r.files.opts.Only != nil {
			continue
		}
		for _, one := range secretReferences(r.needless, m.Value) {
			if !slices.Contains(references, one) {
				references = append(references, one)
			}
		}
	}
	return references
}

// secretReferences returns the references to secrets in n and below it, except in unselected
// parts.
func secretReferences(needless map[syntax.Pos]bool, n *syntax.Node) []string {
	var all []string
	if disabled := n.Get("disabled"); disabled != nil && disabled.Scalar == "true" || n.Kind == syntax.Object && needless[n.At] {
		return nil
	}
	if n.Kind == syntax.Text {
		for rest := n.Scalar; rest != ""; {
			var one string
			if _, one, rest = reference.Next(rest); reference.IsSecret(one) && !reference.IsNested(one) {
				all = append(all, one)
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

// secretsOf records the secrets of a text, and the missing ones.
func (e *expander) secretsOf(n *syntax.Node, path string, x reference.Expansion) {
	for _, value := range x.Secrets {
		e.secret(value)
	}
	for _, s := range x.Failed {
		if e.failed == nil {
			e.fail(n.At, path, s.Problem, s.Hint)
		} else {
			*e.failed = append(*e.failed, s)
		}
	}
}
