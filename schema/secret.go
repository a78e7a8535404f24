package schema

import (
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// maxLookups is how many secrets are looked up concurrently.
const maxLookups = 8

// findSecrets looks up all secrets that a document refers to, except those of disabled and
// unselected servers and, with Only, those of the gateway and of modules. Those of schemes that the program
// lacks have a problem, whether secrets are looked up or not.
func (r *reading) findSecrets(root *syntax.Node) map[string]reference.Secret {
	found := map[string]reference.Secret{}
	for _, m := range root.Members {
		whole := m.Key == "gateway" || refersToVariables(r.known, m.Key) // of the run, and no server
		if (whole || slices.Contains(interpolated, m.Key)) && !(whole && r.files.opts.Only != nil) {
			addReferences(found, r.needless, syntax.Below("", m.Name()), m.Value, slices.Contains(ServerLists, m.Key))
		}
	}
	var asked []string
	for _, ref := range slices.Sorted(maps.Keys(found)) {
		switch scheme := reference.Scheme(ref); {
		case scheme != reference.File && !slices.Contains(r.files.opts.Schemes, scheme):
			found[ref] = reference.Secret{Problem: "${" + scheme + ":…} " + reference.Lacking(scheme), Hint: "use a build with it, or another reference"}
		case r.files.opts.Secret == nil:
			delete(found, ref)
		default:
			asked = append(asked, ref)
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxLookups)
	for _, ref := range asked {
		group.Go(func() error {
			value, problem, hint := r.files.opts.Secret(ref[2 : len(ref)-1])
			mu.Lock()
			defer mu.Unlock()
			found[ref] = reference.Secret{Value: value, Problem: problem, Hint: hint}
			return nil
		})
	}
	_ = group.Wait()
	return found
}

// addReferences adds the references to secrets in n and below it, except in disabled servers and
// unselected parts. servers is set if n holds servers by name.
func addReferences(found map[string]reference.Secret, needless map[string]bool, path string, n *syntax.Node, servers bool) {
	if n.Kind == syntax.Text {
		for rest := n.Scalar; rest != ""; {
			var one string
			if _, one, rest = reference.Next(rest); reference.IsSecret(one) && !reference.IsNested(one) {
				found[one] = reference.Secret{}
			}
		}
	}
	for i, item := range n.Items {
		addReferences(found, needless, syntax.Item(path, i), item, false)
	}
	for _, m := range n.Members {
		inner := syntax.Below(path, m.Key)
		if !needless[inner] && !(servers && isDisabled(m.Value)) {
			addReferences(found, needless, inner, m.Value, false)
		}
	}
}

// isDisabled reports whether a server's entry disables it.
func isDisabled(entry *syntax.Node) bool {
	disabled := entry.Get("disabled")
	return disabled != nil && disabled.Scalar == "true"
}

// secretsOf records the secrets of a text, and the missing ones.
func (e *expander) secretsOf(n *syntax.Node, path string, x reference.Expansion) {
	if x.Unasked && e.used {
		x.Failed = append(x.Failed, reference.Secret{Problem: "a reference to a secret is not resolved", Hint: "select the server: only secrets of selected servers are looked up"})
	}
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
