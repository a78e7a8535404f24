package secretref_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func failure(t *testing.T, r *secretref.Resolver, reference string) *secretref.Error {
	t.Helper()
	_, err := r.Resolve(t.Context(), nil, reference)
	why, ok := errors.AsType[*secretref.Error](err)
	if !ok {
		t.Fatalf("%s: got error %v", reference, err)
	}
	if strings.Contains(why.Error(), "CANARY") {
		t.Errorf("%s shows a secret: %v", reference, why)
	}
	return why
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	var hide redact.Redactor
	r := &secretref.Resolver{Hide: &hide}
	path := filepath.Join(dir, "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{"CANARY": "CANARY", "CANARY\n": "CANARY", "CANARY\r\n": "CANARY", "CANARY\n\n": "CANARY\n", " CANARY \r": " CANARY \r"} {
		write(text) // files are read each time
		for _, name := range []string{path, "~/token"} {
			if got, err := r.Resolve(t.Context(), nil, "file:"+name); got != want || err != nil {
				t.Errorf("%q: got %q, %v", text, got, err)
			}
		}
	}
	if got := hide.String("CANARY"); got != redact.Mark {
		t.Errorf("shown: %s", got)
	}
	for text, want := range map[string]string{"": "it is empty", "\n": "it is empty", "CANARY\x00": "it has a byte 0"} {
		write(text)
		if why := failure(t, r, "file:"+path); why.Hint != want {
			t.Errorf("%q: got %q", text, why.Hint)
		}
	}
	write(strings.Repeat("CANARY", 20000))
	failure(t, r, "file:"+path)
	failure(t, r, "file:"+dir)
	failure(t, r, "file:token")
	if why := failure(t, r, "file:"+path+"x"); why.Hint != "there is no file "+path+"x" {
		t.Errorf("got %q", why.Hint)
	}
}

// A reference of a scheme that is not there has no value, and nothing is kept of it.
func TestUnknownScheme(t *testing.T) {
	if why := failure(t, &secretref.Resolver{}, "keyring:TOKEN"); why.What != "nothing resolves ${keyring:…}" {
		t.Errorf("got %v", why)
	}
}
