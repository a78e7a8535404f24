package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/rate"
)

// Whatever calls do, no period has more starts than the rate, and a call that waits starts as soon
// as it may.
func TestRateIsExact(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			at := rate.Rate{Calls: rapid.IntRange(1, 5).Draw(r, "calls"), Per: time.Duration(rapid.IntRange(1, 20).Draw(r, "per")) * time.Second}
			s := &schema.Server{Rate: at}
			var l rateLimit
			var starts []time.Time
			for range 60 {
				time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(r, "pause")) * time.Millisecond)
				if !l.Take(nil, s) {
					d, ok := l.Delay(s)
					time.Sleep(d - time.Nanosecond)
					if !ok || l.Take(nil, s) {
						r.Fatalf("a call starts before %v", d)
					}
					time.Sleep(time.Nanosecond)
					if !l.Take(nil, s) {
						r.Fatalf("no call starts after %v", d)
					}
				}
				starts = append(starts, time.Now())
				if old := len(starts) - 1 - at.Calls; old >= 0 && starts[len(starts)-1].Sub(starts[old]) < at.Per {
					r.Fatalf("%d calls started within %v, at a rate of %s", at.Calls+1, starts[len(starts)-1].Sub(starts[old]), at)
				}
			}
		})
	})
}
