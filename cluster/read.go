package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/cluster/kv"
)

// Read returns the members and the leases that they hold, by name, without becoming a
// member.
func Read(ctx context.Context, store kv.Store) ([]Member, []LeaseInfo, error) {
	members, leases, err := read(ctx, store)
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster's state: %w", err)
	}
	return members, leases, nil
}

func read(ctx context.Context, store kv.Store) (members []Member, leases []LeaseInfo, err error) {
	bucket, err := store.Bucket(ctx, Bucket)
	if err != nil {
		return nil, nil, err
	}
	list, err := kv.List(ctx, bucket, "")
	if err != nil {
		return nil, nil, err
	}
	epochs := map[string]uint64{}
	for key, e := range list {
		var m Member
		if strings.HasPrefix(key, memberPrefix) && json.Unmarshal(e.Value, &m) == nil {
			members = append(members, m)
			epochs[m.ID] = m.Epoch
		}
	}
	for key, e := range list {
		l := LeaseInfo{Revision: e.Revision}
		if strings.HasPrefix(key, leasePrefix) && json.Unmarshal(e.Value, &l) == nil && epochs[l.Owner] == l.Epoch {
			leases = append(leases, l)
		}
	}
	sortMembers(members)
	sortLeases(leases)
	return members, leases, nil
}
