package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dynmcp/dynmcp/modules/cluster/members"
)

// fleet returns members with names like those that a Deployment gives.
func fleet(from, count int) []members.Member {
	all := make([]members.Member, count)
	for i := range all {
		all[i].Name = fmt.Sprintf("dynmcp-7c9d8b6f54-%05d", from+i)
		all[i].ID = fmt.Sprintf("%016d", from+i)
	}
	return all
}

// placed returns the index of the member of each server.
func placed(servers int, among []members.Member) []int {
	at := make([]int, servers)
	for i := range at {
		best, _ := members.Rendezvous(server(i), among)
		at[i] = slices.IndexFunc(among, func(m members.Member) bool { return m.ID == best.ID })
	}
	return at
}

func server(i int) string { return fmt.Sprintf("server-%04d", i) }

func placement(w io.Writer) {
	fmt.Fprintf(w, "placement: servers of a replica, by rendezvous hashing\n")
	fmt.Fprintf(w, "  %8s %8s %8s %8s %8s %8s %12s %10s %22s\n", "replicas", "servers", "mean", "least", "most", "sd", "sd by chance", "moved*", "most, all restarted**")
	for _, size := range [][2]int{{3, 30}, {3, 1000}, {10, 100}, {10, 1000}, {30, 1000}, {100, 1000}, {100, 10_000}} {
		replicas, servers := size[0], size[1]
		members := fleet(0, replicas)
		at := placed(servers, members)
		held := counts(at, replicas)
		mean := float64(servers) / float64(replicas)
		variance := 0.0
		for _, n := range held {
			variance += (float64(n) - mean) * (float64(n) - mean) / float64(replicas)
		}
		// Count the servers that would have another place if one more replica joined.
		moved := 0
		for i, now := range placed(servers, append(slices.Clone(members), fleet(replicas, 1)...)) {
			if now != at[i] {
				moved++
			}
		}
		fmt.Fprintf(w, "  %8d %8d %8.1f %8d %8d %8.1f %12.1f %9.1f%% %22d\n", replicas, servers, mean, slices.Min(held), slices.Max(held),
			math.Sqrt(variance), math.Sqrt(mean*(1-1/float64(replicas))), 100*float64(moved)/float64(servers), slices.Max(counts(restarted(at, members), replicas)))
	}
	fmt.Fprintf(w, "  *  of the servers, when one more replica joins and all were placed anew; %.1f%% of 1,000 is its share among 100\n", 100.0/101)
	fmt.Fprintf(w, "  ** the fullest replica after a rolling restart: a new one joins, an old one hands its servers over; who has a server keeps it\n\n")
}

func counts(at []int, replicas int) []int {
	held := make([]int, replicas)
	for _, i := range at {
		held[i]++
	}
	return held
}

// restarted returns the index of the member of each server after each member was replaced
// in turn: the new one joins, the old one drains, and its servers are placed by hash.
func restarted(at []int, all []members.Member) []int {
	at, all = slices.Clone(at), slices.Clone(all)
	for i := range all {
		fresh := fleet(len(all)+i, 1)[0]
		without := slices.Clone(all)
		without[i] = fresh // nothing is placed on the member that drains
		for s := range at {
			if at[s] != i {
				continue
			}
			best, _ := members.Rendezvous(server(s), without)
			at[s] = slices.IndexFunc(without, func(m members.Member) bool { return m.ID == best.ID })
		}
		all = without
	}
	return at
}
