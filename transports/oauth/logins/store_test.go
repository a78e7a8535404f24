package logins

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	zalando "github.com/zalando/go-keyring"

	"github.com/dynmcp/dynmcp/schema"
)

var aKey = Key{Server: "web", Resource: "https://web.example.test/mcp"}

func aLogin() *Login {
	return &Login{
		Server: "web", Issuer: "https://auth.example.test", Resource: "https://web.example.test/mcp", ClientID: "client",
		TokenURL: "https://auth.example.test/token", Issued: time.Now(), Expires: time.Now().Add(time.Hour), Scopes: []string{"read"},
		Secrets: Secrets{AccessToken: "access-s3cret", RefreshToken: "refresh-s3cret", ClientSecret: "client-s3cret", RegistrationToken: "registration-s3cret"},
	}
}

func dirOf(s *Store) string { return s.backend.(*files).dir }

func written(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, e.Name()...), text...)
	}
	return all
}

// withKeyring gives the test the mock keyring of the library. The process has one, so tests with it
// must not be parallel.
func withKeyring(t *testing.T) {
	t.Setenv("DYNMCP_KEYRING", "on")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	zalando.MockInit()
}

func TestStoreWithAndWithoutKeyring(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		if sealed {
			withKeyring(t)
		}
		s := NewFiles(filepath.Join(t.TempDir(), "deep", "logins"))
		if l, err := s.Load(aKey); l != nil || err != nil {
			t.Errorf("got %v, %v of nothing", l, err)
		}
		want := aLogin()
		want.DPoPKey = "dpop-s3cret"
		if err := s.Save(aKey, want); err != nil {
			t.Fatal(err)
		}
		got, err := NewFiles(dirOf(s)).Load(aKey) // as another process does
		if err != nil || got == nil || !reflect.DeepEqual(got.Secrets, want.Secrets) || got.TokenURL != want.TokenURL || !got.Expires.Equal(want.Expires) {
			t.Errorf("sealed %t: got %+v, %v", sealed, got, err)
		}
		if peeked, err := s.Peek(aKey); err != nil || !peeked.HasToken || !peeked.Renews || !reflect.DeepEqual(peeked.Secrets, Secrets{}) {
			t.Errorf("peeked %+v, %v", peeked, err)
		}
		if open := bytes.Contains(written(t, dirOf(s)), []byte("s3cret")); open == sealed {
			t.Errorf("sealed %t: secrets are readable: %t", sealed, open)
		}
		if place := s.Place(); strings.Contains(place, "sealed") != sealed {
			t.Errorf("place: %s", place)
		}
		if runtime.GOOS != "windows" {
			for path, mode := range map[string]os.FileMode{dirOf(s): 0o700, filepath.Join(dirOf(s), aKey.file(aLogin().Issuer)): 0o600} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
		}
		for _, want := range []bool{true, false} {
			if was, err := s.Delete(aKey); was != want || err != nil {
				t.Errorf("deleted %t, %v", was, err)
			}
		}
	}
}

func TestLoginsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := NewFiles(t.TempDir() + "/logins")
	entry := schema.Server{Name: "web", URL: "https://web.example.test/mcp"}
	if err := s.Save(KeyOf(entry), aLogin()); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]schema.Server{
		"another name":   {Name: "other", URL: entry.URL},
		"another origin": {Name: "web", URL: "https://web.example.test:8443/mcp"},
		"another scheme": {Name: "web", URL: "http://web.example.test/mcp"},
		"another path":   {Name: "web", URL: "https://web.example.test/other"},
		"another client": {Name: "web", URL: entry.URL, Auth: &schema.Auth{ClientID: "mine"}},
	} {
		if l, err := s.Load(KeyOf(other)); l != nil || err != nil {
			t.Errorf("%s has the same login: %v", name, err)
		}
	}
	entry.Auth = &schema.Auth{Scope: "more"}
	if l, err := s.Load(KeyOf(entry)); l == nil || err != nil {
		t.Errorf("another scope loses the login: %v", err)
	}
}

func TestFilesThatAreNoLogins(t *testing.T) {
	t.Parallel()
	s := NewFiles(t.TempDir() + "/logins")
	if err := s.Save(aKey, aLogin()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dirOf(s), aKey.file(aLogin().Issuer))
	for _, text := range []string{"", "{", "[]", "null", `{"version":2,"login":{},"secrets":{"access_token":"x"}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := s.Load(aKey); l != nil || err != nil {
			t.Errorf("%q: got %v, %v", text, l, err)
		}
	}
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	s := NewFiles(t.TempDir() + "/logins")
	if err := s.Save(aKey, aLogin()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dirOf(s), aKey.file(aLogin().Issuer))
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(aKey); err == nil || !strings.Contains(err.Error(), "mode 0644") {
		t.Errorf("a file that all can read: %v", err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(aKey); err == nil {
		t.Error("a link was followed")
	}
	if err := errors.Join(os.Remove(path), os.Chmod(dirOf(s), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(aKey, aLogin()); err == nil || !strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("a directory that all can read: %v", err)
	}
	if _, err := s.Load(aKey); err == nil || !strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("a directory that all can read: %v", err)
	}
}

// Logins at several issuers of one server have separate files, and do not affect each other.
func TestLoginsAtSeveralIssuers(t *testing.T) {
	t.Parallel()
	s := NewFiles(t.TempDir() + "/logins")
	first, second := aLogin(), aLogin()
	first.Issued = first.Issued.Add(-time.Minute)
	second.Issuer, second.TokenURL, second.AccessToken = "https://other.example.test", "https://other.example.test/token", "other-s3cret"
	for _, l := range []*Login{first, second} {
		if err := s.Save(aKey, l); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := s.Load(aKey); err != nil || l.Issuer != second.Issuer || l.AccessToken != "other-s3cret" {
		t.Errorf("got %+v, %v: want the most recent one", l, err)
	}
	all, err := s.LoadAll(aKey)
	if err != nil || len(all) != 2 || all[1].Issuer != first.Issuer || all[1].AccessToken != "access-s3cret" {
		t.Errorf("got %+v, %v", all, err)
	}
	if was, err := s.Delete(aKey); !was || err != nil {
		t.Errorf("deleted %t, %v", was, err)
	}
	if all, err := s.LoadAll(aKey); len(all) != 0 || err != nil {
		t.Errorf("still there: %+v, %v", all, err)
	}
}

// A file from before issuers had separate files is read as a login, and moved by the next Save.
func TestFilesOfOneIssuerOnly(t *testing.T) {
	t.Parallel()
	for name, issuer := range map[string]string{"the same": "https://auth.example.test", "another": "https://other.example.test"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewFiles(t.TempDir() + "/logins")
			old := aLogin()
			old.Issued, old.AccessToken = old.Issued.Add(-time.Minute), "old-s3cret"
			if err := errors.Join(s.Save(aKey, old), os.Rename(filepath.Join(dirOf(s), aKey.file(old.Issuer)), filepath.Join(dirOf(s), aKey.file("")))); err != nil {
				t.Fatal(err)
			}
			if l, err := s.Load(aKey); err != nil || l == nil || l.AccessToken != "old-s3cret" {
				t.Fatalf("got %+v, %v", l, err)
			}
			next := aLogin()
			next.Issuer = issuer
			if err := s.Save(aKey, next); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(dirOf(s), aKey.file(""))); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the old file is still there: %v", err)
			}
			all, err := s.LoadAll(aKey)
			if err != nil || all[0].Issuer != issuer || all[0].AccessToken != next.AccessToken {
				t.Errorf("got %+v, %v", all, err)
			}
			if moved := len(all) == 2 && all[1].AccessToken == "old-s3cret"; moved != (name == "another") {
				t.Errorf("%d logins", len(all))
			}
		})
	}
}

// Write access to a file is not enough to have its secrets sent elsewhere.
func TestSealBindsTheEndpoints(t *testing.T) {
	withKeyring(t)
	s := NewFiles(t.TempDir() + "/logins")
	if err := s.Save(aKey, aLogin()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dirOf(s), aKey.file(aLogin().Issuer))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("https://auth.example.test/token"), []byte("https://evil.example.test/token"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Load(aKey); l != nil || err != nil {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestKeyringThatWasEmptied(t *testing.T) {
	withKeyring(t)
	s := NewFiles(t.TempDir() + "/logins")
	if err := s.Save(aKey, aLogin()); err != nil {
		t.Fatal(err)
	}
	zalando.MockInit()
	if l, err := NewFiles(dirOf(s)).Load(aKey); l != nil || err != nil {
		t.Errorf("got %v, %v: want no login", l, err)
	}
	zalando.MockInitWithError(errors.New("locked"))
	if _, err := NewFiles(dirOf(s)).Load(aKey); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a keyring that fails: %v", err)
	}
	// A process that knows the key continues to seal.
	if err := s.Save(aKey, aLogin()); err != nil || bytes.Contains(written(t, dirOf(s)), []byte("s3cret")) {
		t.Errorf("saved in the open: %v", err)
	}
}

// Processes that make the first login at the same time use one key.
func TestOneKeyForAll(t *testing.T) {
	withKeyring(t)
	dir := t.TempDir() + "/logins"
	keys := []Key{{Server: "a"}, {Server: "b"}, {Server: "c"}, {Server: "d"}}
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			if err := NewFiles(dir).Save(key, aLogin()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if l, err := NewFiles(dir).Load(key); l == nil || err != nil {
			t.Errorf("the login of %s is lost: %v", key.Server, err)
		}
	}
}

func TestStateOfALogin(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, l := range map[string]*Login{
		"not logged in":                 nil,
		"not logged in ":                {Expires: now},
		"logged in":                     {HasToken: true},
		"logged in ":                    {HasToken: true, Renews: true, Expires: now.Add(-time.Second)},
		"login expired":                 {HasToken: true, Expires: now.Add(-time.Second)},
		"logged in, more scopes wanted": {HasToken: true, Wanted: []string{"x"}},
		"logged in (expires in 59s)":    {HasToken: true, Expires: now.Add(59*time.Second + 900*time.Millisecond)},
		"logged in (expires in 47m)":    {HasToken: true, Renews: true, Expires: now.Add(47*time.Minute + 30*time.Second)},
		"logged in (expires in 1h)":     {HasToken: true, Expires: now.Add(time.Hour)},
		"logged in (expires in 1h 1m)":  {HasToken: true, Expires: now.Add(61 * time.Minute)},
		"logged in (expires in 1d)":     {HasToken: true, Expires: now.Add(24 * time.Hour)},
		"logged in (expires in 1d 1h)":  {HasToken: true, Expires: now.Add(25*time.Hour + 10*time.Minute)},
	} {
		if got := l.State(now); got != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
