package members

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// A lateBucket answers the creation of a lease 2 s after it was done, and does not answer
// heartbeats while mute is set.
type lateBucket struct {
	records.Bucket
	mute atomic.Bool
}

func (b *lateBucket) wrap(bucket records.Bucket) records.Bucket {
	b.Bucket = bucket
	return b
}

func (b *lateBucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	revision, err := b.Bucket.Create(ctx, key, value)
	if strings.HasPrefix(key, leasePrefix) {
		time.Sleep(2 * time.Second)
	}
	return revision, err
}

func (b *lateBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if b.mute.Load() && strings.HasPrefix(key, memberPrefix) {
		<-ctx.Done()
		return 0, records.ErrUnavailable
	}
	return b.Bucket.Update(ctx, key, value, revision)
}

// Validity may end while a lease is written.
func TestALeaseThatIsWrittenTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late lateBucket
		a := join(t, wrapped{memkv.New().Connect(), late.wrap}, "a")
		time.Sleep(5 * HeartbeatInterval)
		late.mute.Store(true)
		time.Sleep(Validity - 2*HeartbeatInterval)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if l, err := a.Take(ctx, "git"); err == nil {
			t.Errorf("taken, valid: %t, lost: %t", a.Valid(), isClosed(l.Lost()))
			l.Release()
		}
		late.mute.Store(false)
		time.Sleep(5 * HeartbeatInterval)
		take(t, a, "git").Release()
	})
}

// The record of a lease may be broken before its writer knows that it was written. Others
// may have taken it then.
func TestALeaseThatIsBrokenBeforeItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a := join(t, wrapped{m.Connect(), (&lateBucket{}).wrap}, "a")
		time.AfterFunc(time.Second, func() { breakRecord(t, m.Connect(), leaseKey("git")) })
		l := take(t, a, "git")
		defer l.Release()
		synctest.Wait()
		if all := a.State().Leases; len(all) != 1 || all[0].Revision != l.Revision() {
			t.Errorf("taken at revision %d, and the state has %+v", l.Revision(), all)
		}
	})
}
