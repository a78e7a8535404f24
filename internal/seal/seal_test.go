package seal

import (
	"bytes"
	"errors"
	"testing"
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, MinSecret) }

func keys(t *testing.T, secrets ...[]byte) *Keys {
	t.Helper()
	k, err := New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOpensOnlyWhatWasSealedForThePurpose(t *testing.T) {
	k := keys(t, secret(1))
	text := k.SealText("session", []byte("hello"))
	if plain, err := k.OpenText("session", text); err != nil || string(plain) != "hello" {
		t.Fatalf("got %q, %v", plain, err)
	}
	if again := k.SealText("session", []byte("hello")); again == text {
		t.Error("the same text is sealed to the same bytes twice")
	}
	if _, err := k.OpenText("state", text); !errors.Is(err, ErrSeal) {
		t.Errorf("opened for another purpose: %v", err)
	}
	if _, err := keys(t, secret(2)).OpenText("session", text); !errors.Is(err, ErrSeal) {
		t.Errorf("opened with another key: %v", err)
	}
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if _, err := k.OpenText("session", string(changed)); !errors.Is(err, ErrSeal) {
			t.Errorf("opened with byte %d changed: %v", i, err)
		}
		if _, err := k.OpenText("session", text[:i]); !errors.Is(err, ErrSeal) {
			t.Errorf("opened with %d bytes: %v", i, err)
		}
	}
}

func TestKeysRotateTwoAtATime(t *testing.T) {
	old, both, next := keys(t, secret(1)), keys(t, secret(2), secret(1)), keys(t, secret(2))
	before := old.SealText("x", []byte("before"))
	if plain, err := both.OpenText("x", before); err != nil || string(plain) != "before" {
		t.Errorf("the older key does not open: %q, %v", plain, err)
	}
	after := both.SealText("x", []byte("after"))
	if plain, err := next.OpenText("x", after); err != nil || string(plain) != "after" {
		t.Errorf("the first key does not seal: %q, %v", plain, err)
	}
	if _, err := next.OpenText("x", before); !errors.Is(err, ErrSeal) {
		t.Errorf("a key that is gone still opens: %v", err)
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	if _, err := New(secret(1), []byte("short")); err == nil || err.Error() != "key 2 has 5 bytes, fewer than 32" {
		t.Errorf("got %v", err)
	}
	if _, err := New(); err == nil {
		t.Error("no key is no error")
	}
}

func TestDerivedSecretsDiffer(t *testing.T) {
	k := keys(t, secret(2), secret(1))
	a, errA := k.Derive("a", 32)
	b, errB := k.Derive("b", 32)
	if errA != nil || errB != nil || len(a) != 2 || len(b) != 2 {
		t.Fatalf("got %d, %d secrets, %v, %v", len(a), len(b), errA, errB)
	}
	if bytes.Equal(a[0], a[1]) || bytes.Equal(a[0], b[0]) || bytes.Equal(a[0], secret(2)) {
		t.Error("two of them are the same")
	}
}
