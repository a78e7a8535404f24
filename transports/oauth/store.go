package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
	"golang.org/x/oauth2"

	"dynmcp/internal/atomicfile"
	"dynmcp/schema"
)

// A Key says what a login is for: an entry of the config, its address, and the
// client that it names. Another address or client is another login.
type Key struct {
	Server   string // the name of the entry
	Resource string // its url
	Client   string // client_id of its auth, empty if a client is registered for us
}

// KeyOf returns the key of the login at a server.
func KeyOf(s schema.Server) Key {
	key := Key{Server: s.Name, Resource: s.URL}
	if s.Auth != nil {
		key.Client = s.Auth.ClientID
	}
	return key
}

// file is the name of the file that a login is kept in. It says nothing of the
// address, which may hold a secret.
func (k Key) file() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Server, k.Resource, k.Client}, "\n")))
	return k.Server + "-" + hex.EncodeToString(sum[:12]) + ".json"
}

// A Login is what a login gave. It is bound to one issuer: tokens and the secret of
// the client go to that issuer's endpoints and nowhere else.
type Login struct {
	Server      string           `json:"server"`
	Issuer      string           `json:"issuer"`
	Resource    string           `json:"resource"` // RFC 8707, as the tokens were asked for
	ClientID    string           `json:"client_id"`
	TokenURL    string           `json:"token_endpoint"`
	RevokeURL   string           `json:"revocation_endpoint,omitempty"`
	RegisterURL string           `json:"registration_client_uri,omitempty"` // RFC 7592
	AuthStyle   oauth2.AuthStyle `json:"auth_style,omitempty"`
	Scopes      []string         `json:"scopes,omitempty"`
	Wanted      []string         `json:"wanted,omitempty"` // scopes that the server has asked for since
	Issued      time.Time        `json:"issued"`
	Expires     time.Time        `json:"expires,omitzero"` // of the access token, zero if that was not said

	// What Peek can say of the secrets.
	HasToken bool `json:"has_token"`
	Renews   bool `json:"renews"` // there is a refresh token

	Secrets `json:"-"`
}

// Secrets are what must not be seen of a login.
type Secrets struct {
	AccessToken       string `json:"access_token,omitempty"`
	RefreshToken      string `json:"refresh_token,omitempty"`
	ClientSecret      string `json:"client_secret,omitempty"`
	RegistrationToken string `json:"registration_access_token,omitempty"`
}

func (s Secrets) all() []string {
	return []string{s.AccessToken, s.RefreshToken, s.ClientSecret, s.RegistrationToken}
}

// fresh reports whether the access token will do for a while: a minute, or a
// quarter of its life if that is shorter.
func (l *Login) fresh(now time.Time) bool {
	margin := min(time.Minute, l.Expires.Sub(l.Issued)/4)
	return l.AccessToken != "" && (l.Expires.IsZero() || now.Add(margin).Before(l.Expires))
}

// State says in a few words what Peek found, "not logged in" of nil.
func (l *Login) State(now time.Time) string {
	switch {
	case l == nil || !l.HasToken && !l.Renews:
		return "not logged in"
	case len(l.Wanted) > 0:
		return "logged in, more scopes wanted"
	case l.Expires.IsZero() || l.Renews && now.After(l.Expires):
		return "logged in"
	case now.After(l.Expires):
		return "login expired"
	}
	return fmt.Sprintf("logged in (expires in %s)", inWords(l.Expires.Sub(now)))
}

// inWords returns a duration as people say it, in at most two units.
func inWords(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case hours == 0:
		return fmt.Sprintf("%dm", minutes)
	case hours < 24 && minutes%60 == 0:
		return fmt.Sprintf("%dh", hours)
	case hours < 24:
		return fmt.Sprintf("%dh %dm", hours, minutes%60)
	case hours%24 == 0:
		return fmt.Sprintf("%dd", hours/24)
	}
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}

// valid reports whether the access token has not expired, as far as is known.
func (l *Login) valid(now time.Time) bool {
	return l.AccessToken != "" && (l.Expires.IsZero() || now.Before(l.Expires))
}

// want adds scopes that the login lacks and reports whether there were any.
func (l *Login) want(scopes []string) bool {
	before := len(l.Wanted)
	for _, s := range scopes {
		if !slices.Contains(l.Scopes, s) && !slices.Contains(l.Wanted, s) {
			l.Wanted = append(l.Wanted, s)
		}
	}
	return len(l.Wanted) > before
}

// A Store keeps logins, one file each, which several processes may use at once.
// The secrets in it are sealed with a key from the keyring of the system; where
// there is none the files hold them as they are, readable by their owner only.
type Store struct {
	dir     string
	keyring keyring
}

// NewStore returns the store in a directory, which is made when it is needed.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Place says where logins that are made now are kept.
func (s *Store) Place() string {
	if _, err := s.keyring.key(""); err == nil || errors.Is(err, errNoKey) {
		return fmt.Sprintf("in %s, sealed with a key in the keyring of the system", s.dir)
	} else {
		return fmt.Sprintf("in %s, which only you can read (no keyring: %v)", s.dir, err)
	}
}

// A record is the text of a login's file. Of the secrets it has one form.
type record struct {
	Version int      `json:"version"`
	Login   Login    `json:"login"`
	Plain   *Secrets `json:"secrets,omitempty"`
	KeyID   string   `json:"key,omitempty"`    // of the key that sealed
	Sealed  []byte   `json:"sealed,omitempty"` // Secrets as JSON, bound to the rest of the login
}

const recordVersion = 1

// Peek returns a login without its secrets and without the keyring, nil if there
// is none.
func (s *Store) Peek(key Key) (*Login, error) {
	r, err := s.read(key)
	if r == nil {
		return nil, err
	}
	return &r.Login, nil
}

// Load returns a login, nil if there is none. One of another version, or that
// cannot be read, is none.
func (s *Store) Load(key Key) (*Login, error) {
	r, err := s.read(key)
	if r == nil {
		return nil, err
	}
	l := &r.Login
	switch {
	case r.Plain != nil:
		l.Secrets = *r.Plain
	case r.Sealed != nil:
		sealing, err := s.keyring.key(r.KeyID)
		if errors.Is(err, errNoKey) {
			return nil, nil // the keyring was emptied: the login is lost
		}
		if err != nil {
			return nil, fmt.Errorf("open the login of %s: %w", key.Server, err)
		}
		text, err := sealing.open(r.Sealed, l.bound())
		if err != nil || json.Unmarshal(text, &l.Secrets) != nil {
			return nil, nil
		}
	}
	return l, nil
}

// bound is the part of a login that a seal binds its secrets to: nobody who can
// write the file can have them sent elsewhere.
func (l *Login) bound() []byte {
	return []byte(strings.Join([]string{l.Server, l.Issuer, l.Resource, l.ClientID, l.TokenURL, l.RevokeURL, l.RegisterURL}, "\n"))
}

func (s *Store) read(key Key) (*record, error) {
	path := filepath.Join(s.dir, key.file())
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = checkPrivate(path, info)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(text, &r) != nil || r.Version != recordVersion {
		return nil, nil
	}
	return &r, nil
}

// Save keeps a login in place of the one before. Whoever reads meanwhile gets one
// of both.
func (s *Store) Save(key Key, l *Login) error {
	r := record{Version: recordVersion, Login: *l}
	r.Login.HasToken, r.Login.Renews = l.AccessToken != "", l.RefreshToken != ""
	if err := s.makeDir(); err != nil {
		return err
	}
	sealing, err := s.sealing()
	if err == nil {
		text, err := json.Marshal(l.Secrets)
		if err != nil {
			return err
		}
		r.KeyID, r.Sealed = sealing.id, sealing.seal(text, l.bound())
	} else {
		r.Plain = &l.Secrets
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	// A refresh token that was replaced is worth nothing any more, so no power loss may
	// bring the old one back.
	return atomicfile.Replace(filepath.Join(s.dir, key.file()), append(text, '\n'), 0o600)
}

// sealing returns the key that seals, and makes one if the keyring has none: one
// process at a time, or each would make its own.
func (s *Store) sealing() (*sealing, error) {
	found, err := s.keyring.key("")
	if !errors.Is(err, errNoKey) {
		return found, err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(s.dir, ".keyring.lock")).Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found, err = s.keyring.key(""); errors.Is(err, errNoKey) {
		found, err = s.keyring.newKey()
	}
	return found, err
}

// Delete forgets a login and reports whether there was one.
func (s *Store) Delete(key Key) (bool, error) {
	err := os.Remove(filepath.Join(s.dir, key.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(s.dir)
	if err != nil {
		return err
	}
	return checkPrivate(s.dir, info)
}

// Lock keeps other processes, and other callers in this one, from changing a login
// until unlock is called. The system holds the lock, so a process that is killed
// leaves none.
func (s *Store) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	type locked struct {
		unlock func()
		err    error
	}
	done := make(chan locked, 1)
	go func() { // the system's lock has no deadline
		unlock, err := lockedfile.MutexAt(filepath.Join(s.dir, key.file()+".lock")).Lock()
		done <- locked{unlock, err}
	}()
	select {
	case l := <-done:
		return l.unlock, l.err
	case <-ctx.Done():
		go func() {
			if l := <-done; l.err == nil {
				l.unlock()
			}
		}()
		return nil, fmt.Errorf("another dynmcp holds the lock on the login of %s: %w", key.Server, ctx.Err())
	}
}

// Update changes a login under its lock; change gets what is kept now, nil if
// there is none, and reports whether to keep what it made of it.
func (s *Store) Update(ctx context.Context, key Key, change func(*Login) bool) error {
	unlock, err := s.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := s.Load(key)
	if err != nil || !change(l) || l == nil {
		return err
	}
	return s.Save(key, l)
}
