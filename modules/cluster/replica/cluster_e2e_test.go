//go:build e2e

package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// An electing store is unavailable for the first few requests.
type electing struct {
	records.Store
	left int
}

func (s *electing) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	if s.left > 0 {
		s.left--
		return nil, fmt.Errorf("no leader: %w", records.ErrUnavailable)
	}
	return s.Store.Bucket(ctx, name)
}

func TestABucketIsWaitedForWhileNATSAgreesWhoLeads(t *testing.T) {
	memory := memkv.New().Connect()
	defer memory.Close()
	if b, err := (retryStore{&electing{memory, 3}, time.Minute}).Bucket(t.Context(), "state"); b == nil || err != nil {
		t.Errorf("got %v, %v", b, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (retryStore{&electing{memory, 1 << 30}, time.Minute}).Bucket(ended, "state"); !errors.Is(err, records.ErrUnavailable) {
		t.Errorf("when it has ended: %v", err)
	}
}
