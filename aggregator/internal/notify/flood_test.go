package notify

import (
	"testing"
	"testing/synctest"
	"time"
)

// A host gets a number of notifications of each server at once, and then so many a second. Other
// servers and other hosts have their own, and notifications that are merged are not limited.
func TestNotificationsOfAServerAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry[string]()
		to, other := join(r, "a", ""), join(r, "b", "")
		accepted := func(to *Recipient[string], server, method string, size int) (n int) {
			for range 10 * maxTokens {
				if to.Accepts(server, method, size) {
					n++
				}
			}
			return n
		}
		for _, test := range []struct {
			method string
			size   int
			most   int
		}{
			{"notifications/progress", 60, maxTokens},
			{"notifications/message", tokenBytes, maxTokens / 2},
			{"notifications/message", 10*tokenBytes - 1, maxTokens / 10},
			{"notifications/message", 10_000 * tokenBytes, 1},
			{"notifications/x-vendor", 0, maxTokens},
			{"notifications/tasksOfMine", 0, maxTokens},
			{"notifications/mine/list_changed", 0, maxTokens},
			{"x", 0, maxTokens},
			{"notifications/resources/updated", 60, 10 * maxTokens},
			{"notifications/tasks", 60, 10 * maxTokens},
			{"notifications/tasks/status", 60, 10 * maxTokens},
			{"notifications/elicitation/complete", 60, 10 * maxTokens},
		} {
			for _, of := range []struct {
				to     *Recipient[string]
				server string
			}{{to, "up"}, {to, "down"}, {other, "up"}} {
				if got := accepted(of.to, of.server, test.method, test.size); got != test.most {
					t.Errorf("%s of %d bytes: %d of %s, want %d", test.method, test.size, got, of.server, test.most)
				}
			}
			accepted(to, "up", "notifications/x", 0)
			time.Sleep(time.Second)
			if got := accepted(to, "up", "notifications/x", 0); got != perSecond {
				t.Errorf("%s: %d a second later, want %d", test.method, got, perSecond)
			}
			time.Sleep(time.Hour)
		}
		if got := accepted(to, "up", "notifications/x", 0); got != maxTokens {
			t.Errorf("an hour later %d, want %d", got, maxTokens)
		}
	})
}

// A replica has hosts of its own, for which it limits notifications.
func TestReplicasAreNotLimited(t *testing.T) {
	r := NewRegistry[string]()
	to := r.New("replica")
	to.Join(nil, Audience{Replica: true})
	for n := range 2 * maxTokens {
		if !to.Accepts("up", "notifications/x", 0) {
			t.Fatalf("notification %d is refused", n)
		}
	}
}

func TestIsMisdirected(t *testing.T) {
	for method, want := range map[string]bool{
		"notifications/initialized": true, "notifications/roots/list_changed": true,
		"notifications/dynmcp/ready": true, "notifications/dynmcp/retired": true, "notifications/dynmcp/": true,
		"notifications/tools/list_changed": false, "notifications/message": false, "notifications/dynmcpx": false, "codex/event": false,
	} {
		t.Run(method, func(t *testing.T) {
			if got := IsMisdirected(method); got != want {
				t.Errorf("got %t", got)
			}
		})
	}
}
