// Package rate has the rate of calls as a config writes it.
package rate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Rate is a number of calls in a period. The zero value is no limit.
type Rate struct {
	Calls int
	Per   time.Duration
}

// Limits of a rate: the starts of so many calls are kept.
const (
	MaxCalls = 10_000
	maxPer   = 24 * time.Hour
)

// UnmarshalText reads a number of calls, a slash and a period: s, m, h, or a time such as 30s. 0 is
// no limit. It implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*r = Rate{}
		return nil
	}
	number, period, _ := strings.Cut(string(text), "/")
	calls, err := strconv.Atoi(number)
	if err != nil || calls < 1 {
		return errors.New("not a rate")
	}
	if period != "" && strings.Trim(period, "smh") == "" {
		period = "1" + period
	}
	per, err := time.ParseDuration(period)
	switch {
	case err != nil || per <= 0:
		return errors.New("not a rate")
	case calls > MaxCalls:
		return fmt.Errorf("a rate of more than %d calls", MaxCalls)
	case per > maxPer:
		return errors.New("a rate of a period longer than 24h")
	}
	*r = Rate{calls, per}
	return nil
}

// MarshalText writes a rate as UnmarshalText reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	if r.Calls == 0 {
		return "0"
	}
	period := syntax.Duration(r.Per)
	switch r.Per {
	case time.Hour, time.Minute, time.Second:
		period = period[1:]
	}
	return fmt.Sprintf("%d/%s", r.Calls, period)
}

// Form returns what a text has to match, and how to write it.
func (Rate) Form() (pattern, want string) {
	return `^(0|[1-9][0-9]*/([smh]|([0-9]+([.][0-9]+)?(ms|s|m|h))+))$|[$][{]`, `want a rate like "60/m", "10/s" or "5/30s"`
}
