//go:build !linux

package guard

import (
	"errors"
	"fmt"
	"os"
)

// describe returns an error that describes how a command ended.
func describe(state *os.ProcessState, err error) error {
	switch {
	case state == nil:
		return fmt.Errorf("it ended: %w", err)
	case state.Success():
		return errors.New("it exited with status 0")
	}
	return fmt.Errorf("it ended: %v", state)
}
