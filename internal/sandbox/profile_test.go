package sandbox_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite testdata/*.sb")

// The profiles are compared, not run: sandbox-exec is a program of macOS.
func TestProfile(t *testing.T) {
	files := sandbox.Policy{Read: []string{"/no/usr", `/no/a "quoted" \name`}, Write: []string{"/no/notes"}}
	for name, network := range map[string]sandbox.Network{"all": sandbox.AllNetwork, "none": sandbox.NoNetwork, "proxy": sandbox.OnlyByProxy} {
		policy := files
		policy.Network, policy.Proxy = network, 3128
		path := filepath.Join("testdata", name+".sb")
		if *update {
			if err := os.WriteFile(path, []byte(policy.Profile()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), policy.Profile()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
