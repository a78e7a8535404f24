package secret

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// InCopies returns the copies of a config that have secrets in plain text: backups of earlier changes,
// and what writers left that were killed.
func InCopies(ctx context.Context, path string) (copies []string) {
	dir, name := filepath.Split(path)
	all := atomicfile.Leftovers(path)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+".bak") {
			all = append(append(all, filepath.Join(dir, e.Name())), atomicfile.Leftovers(filepath.Join(dir, e.Name()))...)
		}
	}
	for _, at := range all {
		text, err := regular.Read(ctx, at, regular.Large)
		if err != nil {
			continue
		}
		if root, err := (&syntax.Source{Name: path, Data: text}).Parse(); err == nil && hasSecret(root) {
			copies = append(copies, at)
		}
	}
	return copies
}

// hasSecret reports whether an entry of a config may have a secret in plain text.
func hasSecret(root *syntax.Node) (found bool) {
	for _, list := range schema.ServerLists {
		for _, entry := range root.MembersOf(list) {
			WalkTexts(entry, func(_, _ string, _ *syntax.Node, all []secrets.Secret) { found = found || len(all) > 0 })
		}
	}
	return found
}

// movable are the keys of entries in which secrets are looked for.
var movable = []string{"command", "url", "httpUrl", "serverUrl", "args", "env", "environment", "headers", "auth"}

// WalkTexts visits the texts of an entry that can be moved, with the secrets in each.
func WalkTexts(entry syntax.Member, visit func(within, key string, n *syntax.Node, all []secrets.Secret)) {
	for _, m := range entry.Value.Members {
		if !slices.Contains(movable, m.Key) {
			continue
		}
		mask.Walk("", m.Key, m.Value, func(within, key string, n *syntax.Node) {
			if n.Kind == syntax.Text && within+key != "" {
				visit(within, key, n, secrets.Find(within, key, n.Scalar))
			}
		})
	}
}
