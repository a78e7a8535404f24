//go:build unix

package packages

import (
	"os"
	"path/filepath"
	"testing"
)

// The version of an image is its digest in the registry, or its id if it was built locally.
func TestDigestThatAnEngineHas(t *testing.T) {
	engine := filepath.Join(t.TempDir(), "podman")
	for says, want := range map[string]string{
		`printf 'ghcr.io/g/s@sha256:12\nother/s@sha256:34\nsha256:56'`: "oci:ghcr.io/g/s:1.2@sha256:12",
		`printf 'sha256:56\n'`:           "oci:ghcr.io/g/s:1.2@sha256:56",
		`echo no such image >&2; exit 1`: "oci:ghcr.io/g/s:1.2",
		`test "$CONTAINER_HOST" = there && test "$1 $2 $6" = "image inspect ghcr.io/g/s:1.2" && echo sha256:78`: "oci:ghcr.io/g/s:1.2@sha256:78",
	} {
		if err := os.WriteFile(engine, []byte("#!/bin/sh\n"+says+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/g/s:1.2", "serve"}
		if got := Running(t.Context(), engine, args, map[string]string{"CONTAINER_HOST": "there"}); got != want {
			t.Errorf("%s: got %s, want %s", says, got, want)
		}
	}
}
