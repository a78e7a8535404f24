// Package logins stores the results of logins, with a lock on each.
//
//	login.go      the result of a login, and its secrets
//	store.go      what all stores do
//	files.go      a store in the user's files, sealed with a key of the system's keyring
//	keyring.go    that key
//	shared.go     a store in the state that replicas share
//	values.go     what users keep for ${user:NAME}, which is stored like a login
package logins

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// A Key identifies the subject of a login: an entry of the config, its address, its client, and the
// user if each has a login of his own.
// The server chooses the issuer of tokens, so logins at several issuers may have one key. Then
// the most recent login is used.
type Key struct {
	Server   string // the name of the entry
	Resource string // its url
	Client   string // client_id of its auth, empty if a client is registered
	// Principal is the user of a gateway whose login it is, "" for the user who runs dynmcp.
	Principal string
}

// Of returns the key of a user's own login.
func (k Key) Of(principal string) Key {
	k.Principal = principal
	return k
}

// Slot identifies the owner of secrets. The secrets of one user do not replace those of another.
func (k Key) Slot() string {
	if k.Principal != "" {
		return "login of " + k.Principal + " at " + k.Server
	}
	return "login of " + k.Server
}

// digested returns what the names of records are made of.
func (k Key) digested() []byte {
	parts := []string{k.Server, k.Resource, k.Client}
	if k.Principal != "" {
		parts = append(parts, k.Principal)
	}
	return []byte(strings.Join(parts, "\n"))
}

// KeyOf returns the key of the login for all users at a server.
func KeyOf(s schema.Server) Key {
	key := Key{Server: s.Name, Resource: s.Address()}
	if s.Auth != nil {
		key.Client = s.Auth.ClientID
	}
	return key
}

const (
	// WaitTime is how long a request waits for the store.
	WaitTime = 5 * time.Second
	// Pause is the time between two looks at what another process or replica may have changed.
	Pause = 100 * time.Millisecond
)

// A Store stores logins, and several processes may use it at once: in files of the user, see
// [NewFiles], or in the state that the replicas of a service share, see [NewShared].
type Store struct{ backend }

type backend interface {
	// Place describes where new logins are stored.
	Place() string
	// Stamp returns a value that is another one after a change of any login, as far as that is known
	// without reading them. A login that replicas share is read again after a 401 only.
	Stamp() int64
	// read returns the records of a key, the most recent first. It omits records of other
	// versions and unreadable ones.
	read(Key) ([]*record, error)
	// open returns the login of a record with its secrets, nil if they are lost.
	open(*record) (*Login, error)
	// Save stores a login in place of the previous one at its issuer. Concurrent readers get
	// one of the two.
	Save(Key, *Login) error
	// Delete forgets a login, at all issuers, and reports whether there was one.
	Delete(Key) (was bool, err error)
	// Lock keeps other processes, and other callers in this one, from changing a login until
	// unlock is called or its holder has died. Among replicas, the lock of one that is cut off
	// passes to another after some seconds: held, which is derived from ctx, ends before that.
	Lock(context.Context, Key) (held context.Context, unlock func(), err error)
}

// A record is the stored form of a login. It has the secrets either in plain text or sealed.
type record struct {
	Version int      `json:"version"`
	Login   Login    `json:"login"`
	Plain   *Secrets `json:"secrets,omitempty"`
	KeyID   string   `json:"key,omitempty"`    // the key that sealed it
	Sealed  []byte   `json:"sealed,omitempty"` // Secrets as JSON, bound to the rest of the login
}

const recordVersion = 1

// recordOf returns the record of a login with its secrets in plain text.
func recordOf(l *Login) *record {
	r := &record{Version: recordVersion, Login: *l, Plain: &l.Secrets}
	r.Login.HasToken, r.Login.Renews = l.AccessToken != "", l.RefreshToken != ""
	return r
}

// newestFirst orders records: the most recent first.
func newestFirst(a, b *record) int { return b.Login.Issued.Compare(a.Login.Issued) }

// own returns the records of a key that are of its user. The name of a record says so already; the
// record itself is bound to its user by the seal.
func (s *Store) own(key Key) ([]*record, error) {
	all, err := s.read(key)
	return slices.DeleteFunc(all, func(r *record) bool { return r.Login.Principal != key.Principal }), err
}

// Peek returns a login without its secrets and without the keyring, or nil.
func (s *Store) Peek(key Key) (*Login, error) {
	all, err := s.own(key)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0].Login, nil
}

// Load returns a login, nil if absent.
func (s *Store) Load(key Key) (*Login, error) {
	all, err := s.own(key)
	if len(all) == 0 {
		return nil, err
	}
	return s.open(all[0])
}

// LoadAll returns the logins at all issuers, the most recent first.
func (s *Store) LoadAll(key Key) ([]*Login, error) {
	all, err := s.own(key)
	var logins []*Login
	for _, r := range all {
		l, failed := s.open(r)
		if l != nil {
			logins = append(logins, l)
		}
		err = errors.Join(err, failed)
	}
	return logins, err
}

// Update changes a login under its lock, or makes one without a token. change reports whether to
// store it.
func (s *Store) Update(ctx context.Context, key Key, change func(*Login) bool) error {
	_, unlock, err := s.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := s.Load(key)
	if err != nil {
		return err
	}
	if l == nil {
		l = &Login{Server: key.Server, Principal: key.Principal}
	}
	if !change(l) {
		return nil
	}
	return s.Save(key, l)
}
