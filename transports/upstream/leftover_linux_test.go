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

// Starts that fail leave no process (fake looks for them) and no descriptor.
func TestFailedStartsLeaveNothing(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		for _, fault := range []string{"exit-now", "exit-on-init", "fail-init", "bad-version"} {
			if _, err := openAndGreet(t.Context(), fake(t, "-fault", fault), Options{HandshakeOnly: true}); err == nil {
				t.Fatalf("%s: no error", fault)
			}
		}
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := openAndGreet(ctx, fake(t, "-fault", "hang-init"), Options{HandshakeOnly: true}); err == nil {
			t.Fatal("hang-init: no error")
		}
		cancel()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before 15 failed starts, %d after", before, after)
	}
}
