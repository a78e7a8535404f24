//go:build e2e

package script_test

import (
	"testing"
	"time"
)

// An expression that is matched without end is stopped by the kernel, which counts whole
// seconds.
func TestEndlessExpression(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.CPU = 100 * time.Millisecond
	ends(t, p, of("return /^(a+)+$(?=x)/.test('a'.repeat(40))"), echo, "the script was stopped: it used 100ms of processor time")
}
