package upstream

import (
	"context"
	"os"
	"testing"
	"time"
)

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// Failed starts leave no process, which fake checks, and no descriptor.
func TestFailedStartsLeaveNothing(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		for fault, limit := range map[string]time.Duration{"exit-now": patience, "exit-on-init": patience, "fail-init": patience, "bad-version": patience, "hang-init": 100 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			if _, err := openWithHandshake(ctx, fake(t, "-fault", fault), ConnOptions{HandshakeOnly: true}); err == nil {
				t.Fatalf("%s: no error", fault)
			}
			cancel()
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before 15 failed starts, %d after", before, after)
	}
}
