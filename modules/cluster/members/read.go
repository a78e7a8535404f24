package members

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A State is the state of a cluster.
type State struct {
	Members []Member    // by name
	Leases  []LeaseInfo // that members hold, by name
	Broken  []string    // the keys of broken records
}

// Read returns the state without becoming a member.
func Read(ctx context.Context, store records.Store) (State, error) {
	bucket, err := store.Bucket(ctx, Bucket)
	if err != nil {
		return State{}, fmt.Errorf("read the cluster's state: %w", err)
	}
	list, err := records.List(ctx, bucket, "")
	if err != nil {
		return State{}, fmt.Errorf("read the cluster's state: %w", err)
	}
	v := newView("", slog.New(slog.DiscardHandler))
	for _, e := range list {
		v.see(e, 0)
	}
	return v.state(), nil
}

// state returns the state in the view. A member whose first record was broken is not in Members.
func (v *view) state() (s State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, m := range v.members {
		if m.broken {
			s.Broken = append(s.Broken, memberKey(id))
		}
		if m.Epoch > 0 {
			s.Members = append(s.Members, m.Member)
		}
	}
	for key, l := range v.leases {
		if l.broken {
			s.Broken = append(s.Broken, key)
		} else if v.holderLocked(l) != nil {
			s.Leases = append(s.Leases, l.LeaseInfo)
		}
	}
	slices.Sort(s.Broken)
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(s.Leases, func(a, b LeaseInfo) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
