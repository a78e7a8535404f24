// Package secret keeps the secrets of configs for the verbs that take them out of configs: in the keyring of
// the system, or in the .env beside a config.
package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema/reference"
)

// Service is the name of the secrets' service in the keyring.
const Service = "dynmcp secrets"

// NoKeyring says what to do where there is no keyring.
const NoKeyring = "take a variable of .env, ${cmd:COMMAND} or ${file:PATH} instead"

// Name matches the names of secrets in the keyring.
var Name = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./@-]{0,99}$`)

// Offered returns an error if there cannot be a keyring, or if no module of the program resolves
// references to its secrets.
func Offered(ctx context.Context) error {
	if !HasModule(ctx) {
		return errors.New("it " + reference.Lacking(InKeyring))
	}
	return keyring.Offered()
}

// HasModule reports whether a module of the program resolves references to secrets in the keyring.
func HasModule(ctx context.Context) bool {
	return slices.Contains(secretref.Names(module.SchemesOf(ctx)), InKeyring)
}

// ReadUnseen prompts for a line on a terminal and reads it without echo. The echo is off before
// the prompt is printed. An interrupt restores the echo and ends the process.
func ReadUnseen(ctx context.Context, fd int, out *terminal.Writer, prompt string) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		_ = term.Restore(fd, before)
		os.Exit(130)
	})()
	if err := echoOff(fd); err != nil {
		return nil, err
	}
	defer term.Restore(fd, before)
	out.Printf("%s", prompt)
	defer out.Printf("\n")
	return term.ReadPassword(fd)
}

// Set stores a secret in the keyring. It lists the name first: after a failure in between, the user
// sees a name without a secret instead of missing a secret without a name.
func Set(name, value string) error {
	err := EditNames(func(names []string) []string { return append(names, name) })
	if err != nil {
		return err
	}
	if err = keyring.Set(Service, name, value); err != nil {
		return KeyringError(err)
	}
	return nil
}

// KeyringError explains an error of the keyring.
func KeyringError(err error) error {
	return hint.With(fmt.Errorf("the keyring cannot be used (%w)", err), "%s", NoKeyring)
}

// openNames opens the file that lists the names of secrets. Keyrings cannot list them.
func openNames() (*editfile.File, error) {
	dir, err := conf.StateDir()
	if err != nil {
		return nil, err
	}
	return editfile.Open(filepath.Join(dir, "secrets.txt"))
}

// Names returns the names of the secrets in the keyring.
func Names() ([]string, error) {
	file, err := openNames()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(file.Old)), func(name string) bool { return !Name().MatchString(name) }), nil
}

// EditNames changes the list of names, which is readable only by its owner.
func EditNames(edit func([]string) []string) error {
	file, err := openNames()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
		return err
	}
	unlock, err := file.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	names := edit(strings.Fields(string(file.Old)))
	slices.Sort(names)
	text := ""
	for _, name := range slices.Compact(names) {
		text += name + "\n"
	}
	return atomicfile.Replace(file.Path, []byte(text), 0o600)
}

// kept returns the secrets of dynmcp in the keyring, by name.
func kept() (map[string]string, error) {
	if err := keyring.Offered(); err != nil {
		return nil, KeyringError(err)
	}
	names, err := Names()
	values := map[string]string{}
	for _, name := range names {
		value, err := keyring.Get(Service, name)
		if errors.Is(err, keyring.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, KeyringError(err)
		}
		cli.Secrets.Add(value)
		values[name] = value
	}
	return values, err
}
