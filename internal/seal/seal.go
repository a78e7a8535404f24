// Package seal encrypts and authenticates texts: those that a host must return, and those that are
// stored where others may read or write.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// ErrSeal means that a text was not sealed with any of our keys, for this purpose, or was changed
// since.
var ErrSeal = errors.New("it was not sealed here, or was changed")

// MinSecret is the minimal length of a secret, in bytes.
const MinSecret = 32

// Keys seal with the first key and open with all. To replace a key, put the new one first and keep the
// old one until nothing sealed with it is used any more.
type Keys struct {
	secrets [][]byte
	aeads   []cipher.AEAD
}

// New returns keys derived from secrets, each at least MinSecret random bytes.
func New(secrets ...[]byte) (*Keys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("there is no key")
	}
	k := &Keys{secrets: secrets}
	for i, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("key %d has %d bytes, fewer than %d", i+1, len(secret), MinSecret)
		}
		key, err := hkdf.Key(sha256.New, secret, nil, "dynmcp seal", 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		k.aeads = append(k.aeads, aead)
	}
	return k, nil
}

// Random returns a key that only this process has.
func Random() *Keys {
	secret := make([]byte, MinSecret)
	_, _ = rand.Read(secret) // never fails
	k, err := New(secret)
	if err != nil {
		panic(err) // not reached: it is long enough
	}
	return k
}

// Seal seals bytes for a purpose. Only Open can read the result.
func (k *Keys) Seal(purpose string, plain []byte) []byte {
	return k.aeads[0].Seal(nil, nil, plain, []byte(purpose))
}

// Open returns bytes that were sealed for a purpose, or ErrSeal.
func (k *Keys) Open(purpose string, sealed []byte) ([]byte, error) {
	for _, aead := range k.aeads {
		if plain, err := aead.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSeal
}

// SealText is Seal with a result of letters, digits, "-" and "_".
func (k *Keys) SealText(purpose string, plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(k.Seal(purpose, plain))
}

// OpenText is Open for what SealText returned.
func (k *Keys) OpenText(purpose, text string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, ErrSeal
	}
	return k.Open(purpose, sealed)
}

// Derive returns a secret of n bytes for another use of each key, in the order of the keys. It is as
// secret as the key.
func (k *Keys) Derive(use string, n int) ([][]byte, error) {
	var all [][]byte
	for _, secret := range k.secrets {
		derived, err := hkdf.Key(sha256.New, secret, nil, "dynmcp "+use, n)
		if err != nil {
			return nil, err
		}
		all = append(all, derived)
	}
	return all, nil
}
