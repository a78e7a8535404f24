//go:build e2e

package script_test

import (
	"testing"
	"time"
)

// The kernel, which counts whole seconds, stops a regular expression that never ends.
func TestEndlessExpression(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.CPU = 100 * time.Millisecond
	ends(t, p, of("return /^(a+)+$(?=x)/.test('a'.repeat(40))"), echo, "the script was stopped: it used 100ms of processor time")
}
