package logins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// The values that a user keeps for ${user:NAME} are one record, in the form of a login without a
// server: sealed like one, locked like one, and shared by replicas like one.

// valuesOf returns the key of a user's values. No server has an empty address.
func valuesOf(principal string) Key { return Key{Server: "user", Principal: principal} }

// Limits of a user's values.
const (
	MaxValue  = 64 << 10 // bytes
	maxValues = 100
)

var valueName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// CheckValue returns why a user cannot keep a value under a name.
func CheckValue(name, value string) error {
	switch {
	case !valueName().MatchString(name):
		return errors.New("this is not a name for a value: use letters, digits and _")
	case value == "":
		return errors.New("the value is empty")
	case len(value) > MaxValue:
		return fmt.Errorf("the value is larger than %d KiB", MaxValue>>10)
	case strings.ContainsAny(value, "\r\n\x00"):
		return errors.New("the value has a line break or a NUL in it, which no header and no variable can have")
	}
	return nil
}

// Values returns what a user keeps, by name.
func (s *Store) Values(principal string) (map[string]string, error) {
	l, err := s.Load(valuesOf(principal))
	if l == nil || err != nil {
		return nil, err
	}
	return l.Values, nil
}

// ValueNames returns the names of what a user keeps, in order, without the keyring.
func (s *Store) ValueNames(principal string) ([]string, error) {
	l, err := s.Peek(valuesOf(principal))
	if l == nil || err != nil {
		return nil, err
	}
	return l.Scopes, nil
}

// SetValue keeps a value of a user under a name, or with "" removes it. It reports whether there was
// one.
func (s *Store) SetValue(ctx context.Context, principal, name, value string) (was bool, err error) {
	if value != "" {
		if err := CheckValue(name, value); err != nil {
			return false, err
		}
	}
	full := false
	err = s.Update(ctx, valuesOf(principal), func(l *Login) bool {
		values := maps.Clone(l.Values)
		if values == nil {
			values = map[string]string{}
		}
		_, was = values[name]
		delete(values, name)
		if value != "" {
			if full = len(values) >= maxValues; full {
				return false
			}
			values[name] = value
		}
		l.Values, l.Scopes = values, slices.Sorted(maps.Keys(values))
		return was || value != ""
	})
	if full {
		err = fmt.Errorf("a user keeps %d values at most", maxValues)
	}
	return was, err
}
