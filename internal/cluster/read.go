package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A State is what a cluster's state says.
type State struct {
	Members []Member    // by name
	Leases  []LeaseInfo // that members hold, by name
	Broken  []string    // the keys of records that are neither, and should be
}

// Read returns the state without becoming a member.
func Read(ctx context.Context, store kv.Store) (State, error) {
	s, err := read(ctx, store)
	if err != nil {
		return State{}, fmt.Errorf("read the cluster's state: %w", err)
	}
	return s, nil
}

func read(ctx context.Context, store kv.Store) (s State, err error) {
	bucket, err := store.Bucket(ctx, Bucket)
	if err != nil {
		return s, err
	}
	list, err := kv.List(ctx, bucket, "")
	if err != nil {
		return s, err
	}
	s.Broken = brokenIn(list)
	epochs := map[string]uint64{}
	for key, e := range list {
		if !strings.HasPrefix(key, memberPrefix) {
			continue
		}
		if m, err := decodeMember(key, e.Value); err == nil {
			s.Members = append(s.Members, m)
			epochs[m.ID] = m.Epoch
		}
	}
	for key, e := range list {
		if !strings.HasPrefix(key, leasePrefix) {
			continue
		}
		if l, err := decodeLease(key, e.Value); err == nil && epochs[l.Owner] == l.Epoch {
			l.Revision = e.Revision
			s.Leases = append(s.Leases, l)
		}
	}
	sortMembers(s.Members)
	sortLeases(s.Leases)
	return s, nil
}
