// Package keyring keeps secrets in the keyring of the system. It asks one question at a
// time, and waits for an answer for ten seconds at most: the keyring may have to ask a
// person to unlock it.
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

// patience is how long the keyring may take.
const patience = 10 * time.Second

// ErrNotFound is the error for what the keyring does not have.
var ErrNotFound = zalando.ErrNotFound

// Get returns what the keyring has for an account of a service.
func Get(service, account string) (string, error) {
	return ask(func() (string, error) { return zalando.Get(service, account) })
}

// Set keeps a text.
func Set(service, account, text string) error {
	_, err := ask(func() (string, error) { return "", zalando.Set(service, account, text) })
	return err
}

// Delete removes what is kept.
func Delete(service, account string) error {
	_, err := ask(func() (string, error) { return "", zalando.Delete(service, account) })
	return err
}

// asking is held while the keyring is asked: a person whom it asks to unlock it is
// asked once, and one that never answers costs one goroutine.
var asking = make(chan struct{}, 1)

func ask(question func() (string, error)) (string, error) {
	if err := Offered(); err != nil {
		return "", err
	}
	type answer struct {
		text string
		err  error
	}
	late, silent := time.After(patience), errors.New("the keyring does not answer; is it locked?")
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

// Offered says why there can be no keyring. Asked without a session bus, the library of
// D-Bus would start one.
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
