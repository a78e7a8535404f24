package oauth

import (
	"context"
	"errors"

	"github.com/dynmcp/dynmcp/schema"
)

// A Key says what a login is for: an entry of the config, its address, and the
// client that it names. Another address or client is another login. Who issues the
// tokens is for the server to say, so logins at several issuers may have one key: each
// has its own file, and the last one made counts.
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

// A Store keeps logins, which several processes may use at once: in files of the user's,
// see [NewStore], or in the state that the replicas of a service share, see [NewShared].
type Store struct{ backend }

type backend interface {
	// Place says where logins that are made now are kept.
	Place() string
	// read returns the records of a key, the last one made first. One of another version,
	// or that cannot be read, is none.
	read(Key) ([]*record, error)
	// open returns the login of a record with its secrets, nil if they are lost.
	open(*record) (*Login, error)
	// Save keeps a login in place of the one before at its issuer. Whoever reads meanwhile
	// gets one of both.
	Save(Key, *Login) error
	// Delete forgets a login, at all issuers, and reports whether there was one.
	Delete(Key) (was bool, err error)
	// Lock keeps other processes, and other callers in this one, from changing a login
	// until unlock is called or its holder has died. Among replicas another may take it
	// after some seconds from one that is cut off: held, which is within ctx, ends before
	// that.
	Lock(context.Context, Key) (held context.Context, unlock func(), err error)
}

// A record is how a login is kept. Of the secrets it has one form.
type record struct {
	Version int      `json:"version"`
	Login   Login    `json:"login"`
	Plain   *Secrets `json:"secrets,omitempty"`
	KeyID   string   `json:"key,omitempty"`    // of the key that sealed
	Sealed  []byte   `json:"sealed,omitempty"` // Secrets as JSON, bound to the rest of the login
}

const recordVersion = 1

// recordOf returns the record of a login with its secrets as they are.
func recordOf(l *Login) *record {
	r := &record{Version: recordVersion, Login: *l, Plain: &l.Secrets}
	r.Login.HasToken, r.Login.Renews = l.AccessToken != "", l.RefreshToken != ""
	return r
}

// lastFirst is the order of records: the last one made counts.
func lastFirst(a, b *record) int { return b.Login.Issued.Compare(a.Login.Issued) }

// Peek returns a login without its secrets and without the keyring, nil if there
// is none.
func (s *Store) Peek(key Key) (*Login, error) {
	all, err := s.read(key)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0].Login, nil
}

// Load returns a login, nil if absent.
func (s *Store) Load(key Key) (*Login, error) {
	all, err := s.read(key)
	if len(all) == 0 {
		return nil, err
	}
	return s.open(all[0])
}

// LoadAll returns the logins at all issuers, the last one made first.
func (s *Store) LoadAll(key Key) ([]*Login, error) {
	all, err := s.read(key)
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

// Update changes a login under its lock; change gets what is kept now, nil if
// there is none, and reports whether to keep what it made of it.
func (s *Store) Update(ctx context.Context, key Key, change func(*Login) bool) error {
	_, unlock, err := s.Lock(ctx, key)
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
