package lock

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// largestDefinition is the largest definition that is stored, in bytes.
const largestDefinition = 4 << 20

// Keep stores the definitions of tools, a file for each, named by the digest: the content of a
// name never changes. A file whose writing was interrupted is rewritten, because its digest is
// wrong. So it is neither synced nor renamed.
func (f Files) Keep(tools []definition.Tool) error {
	if f.Definitions == "" {
		return nil
	}
	if err := os.MkdirAll(f.Definitions, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, t := range tools {
		text := definition.Of(t.Raw)
		if _, ok := f.Definition(t.Digest); ok || len(text) > largestDefinition {
			continue
		}
		errs = append(errs, os.WriteFile(f.path(t.Digest), text, 0o600))
	}
	return errors.Join(errs...)
}

func (f Files) path(digest string) string {
	_, sum, _ := strings.Cut(digest, ":")
	return filepath.Join(f.Definitions, sum+".json")
}

// Definition returns the definition of a digest. ok is false if it was not stored, or has changed.
func (f Files) Definition(digest string) (text json.RawMessage, ok bool) {
	if f.Definitions == "" || !definition.IsDigest(digest) {
		return nil, false
	}
	text, err := regular.ReadNoFollow(context.Background(), f.path(digest), largestDefinition, nil)
	return text, err == nil && definition.Digest(text) == digest
}
