// Package keyring keeps secrets in the keyring of the system. It makes one request at a time, and
// waits ten seconds at most, because the keyring may have to ask a person to unlock it.
package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	zalando "github.com/zalando/go-keyring"
)

// timeout is how long the keyring may take.
const timeout = 10 * time.Second

// ErrNotFound means that the keyring has no such secret.
var ErrNotFound = zalando.ErrNotFound

// Get returns the secret of an account of a service.
func Get(service, account string) (string, error) {
	return ask(func() (string, error) { return zalando.Get(service, account) })
}

// Set stores a secret.
func Set(service, account, text string) error {
	_, err := ask(func() (string, error) { return "", zalando.Set(service, account, text) })
	return err
}

// Delete removes a secret.
func Delete(service, account string) error {
	_, err := ask(func() (string, error) { return "", zalando.Delete(service, account) })
	return err
}

// asking is held during a request: a person who must unlock the keyring is asked once, and a request
// without an answer costs one goroutine.
var asking = make(chan struct{}, 1)

func ask(question func() (string, error)) (string, error) {
	if err := Offered(); err != nil {
		return "", err
	}
	type answer struct {
		text string
		err  error
	}
	late, silent := time.After(timeout), errors.New("the keyring does not answer; is it locked?")
	select {
	case asking <- struct{}{}:
	case <-late:
		return "", silent
	}
	answered := make(chan answer, 1)
	go func() { // it has no deadline of its own
		defer func() { <-asking }()
		defer func() {
			if recover() != nil {
				answered <- answer{err: errors.New("the keyring's library failed")}
			}
		}()
		text, err := question()
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		return a.text, a.err
	case <-late:
		return "", silent
	}
}

// Offered returns an error if there cannot be a keyring. Without a session bus, the
// library of D-Bus would start one.
func Offered() error {
	if strings.EqualFold(os.Getenv("DYNMCP_KEYRING"), "off") {
		return errors.New("DYNMCP_KEYRING is off")
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "bus")); err == nil {
			return nil
		}
	}
	return errors.New("there is no session bus")
}
