package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Member is what a replica says of itself, anew with every beat.
type Member struct {
	ID       string    `json:"id"`      // random, of one process
	Name     string    `json:"name"`    // what people call it
	Address  string    `json:"address"` // host:port where other replicas reach it
	Version  string    `json:"version"` // of the program
	Since    time.Time `json:"since"`   // when it joined, by its own clock
	Epoch    uint64    `json:"epoch"`   // grows when all it held was lost
	Draining bool      `json:"draining,omitzero"`
	Load     Load      `json:"load,omitzero"`
	Beat     uint64    `json:"beat"`  // how many it has sent
	Knows    string    `json:"knows"` // tags of all members it knew, itself too
}

// electors returns the tags of the members that m knew when it sent this, without its own.
// It is empty where m was alone, or is of a release that says it otherwise.
func (m *Member) electors() []string {
	all := strings.Fields(m.Knows)
	own := slices.Index(all, tag(m.ID))
	if own < 0 {
		return nil
	}
	return slices.Delete(all, own, own+1)
}

// Load is what a replica has to do.
type Load struct {
	Sessions int `json:"sessions,omitzero"` // of hosts
	Servers  int `json:"servers,omitzero"`  // that run there
	Calls    int `json:"calls,omitzero"`    // in flight
}

// LeaseInfo is what the cluster's state says of a lease.
type LeaseInfo struct {
	Name     string    `json:"name"`
	Owner    string    `json:"owner"` // the ID of a member
	Epoch    uint64    `json:"epoch"` // of the owner when it took the lease
	Granted  time.Time `json:"granted"`
	Revision uint64    `json:"-"` // of the record: the fencing token
}

const (
	memberPrefix = "member/"
	leasePrefix  = "lease/"
)

func memberKey(id string) string { return memberPrefix + id }

// leaseKey returns the key of a lease, whatever bytes its name has: letters, digits,
// "-" and "_" stand for themselves, another byte is "=" and two digits. What is too long
// for a key, or empty, is "=s" and its digest.
func leaseKey(name string) string {
	var b strings.Builder
	b.WriteString(leasePrefix)
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if name == "" || b.Len() > 200 {
		sum := sha256.Sum256([]byte(name))
		return leasePrefix + "=s" + hex.EncodeToString(sum[:])
	}
	return b.String()
}

// tag returns what stands for an ID in Knows: 40 bits of it, as a record of each beat
// goes to every replica.
func tag(id string) string { return id[:min(8, len(id))] }
