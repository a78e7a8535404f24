package logins

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"

	system "github.com/dynmcp/dynmcp/internal/keyring"
)

const (
	keyringService = "dynmcp"
	keyringAccount = "logins"
)

// errNoKey means that the keyring does not have the key.
var errNoKey = errors.New("the key is not in the keyring")

// A keyring gets the key that seals logins from the system's keyring. There is one key for all,
// because keyrings limit the size of entries (2.5 KB on Windows), and because processes can
// lock and replace files together. It is loaded when the first login is opened or stored, and
// not at the start.
type keyring struct {
	mu    sync.Mutex
	known *sealing
}

// key returns the key with an id, any if the id is empty.
func (k *keyring) key(id string) (*sealing, error) {
	k.mu.Lock()
	known := k.known
	k.mu.Unlock()
	if known != nil && (id == "" || id == known.id) {
		return known, nil
	}
	text, err := system.Get(keyringService, keyringAccount)
	if errors.Is(err, system.ErrNotFound) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errNoKey
	}
	found, err := newSealing(secret)
	if err != nil || id != "" && found.id != id {
		return nil, errNoKey
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = found
	return found, nil
}

// newKey creates a key. The key that the keyring returns is used.
func (k *keyring) newKey() (*sealing, error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	if err := system.Set(keyringService, keyringAccount, base64.StdEncoding.EncodeToString(secret)); err != nil {
		return nil, err
	}
	return k.key("")
}

// A sealing encrypts and authenticates with one key, AES-256-GCM.
type sealing struct {
	id   string // identifies the key without revealing it
	aead cipher.AEAD
}

func newSealing(secret []byte) (*sealing, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	sum := sha256.Sum256(append([]byte("dynmcp logins\n"), secret...))
	return &sealing{hex.EncodeToString(sum[:8]), aead}, err
}

func (s *sealing) seal(text, bound []byte) []byte { return s.aead.Seal(nil, nil, text, bound) }

func (s *sealing) open(sealed, bound []byte) ([]byte, error) {
	return s.aead.Open(nil, nil, sealed, bound)
}

// ForgetKey removes the key that seals logins from the system's keyring, if it is there.
func ForgetKey() error {
	if system.Offered() != nil {
		return nil // no keyring, no key
	}
	if err := system.Delete(keyringService, keyringAccount); err != nil && !errors.Is(err, system.ErrNotFound) {
		return err
	}
	return nil
}
