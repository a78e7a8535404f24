package upstream

import (
	"context"
	"os"
	"sync"
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
	var starts sync.WaitGroup
	for fault, limit := range map[string]time.Duration{"exit-now": patience, "exit-on-init": patience, "fail-init": patience, "bad-version": patience, "hang-init": 100 * time.Millisecond} {
		for range 3 {
			server := fake(t, "-fault", fault)
			starts.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if _, err := openWithHandshake(ctx, server, ConnOptions{HandshakeOnly: true}); err == nil {
					t.Errorf("%s: no error", fault)
				}
			})
		}
	}
	starts.Wait()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before 15 failed starts, %d after", before, after)
	}
}
