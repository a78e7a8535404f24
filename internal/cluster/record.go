package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	Beat     uint64    `json:"beat"`          // how many it has sent
	Knows    string    `json:"knows"`         // tags of all members it knew, itself too
	Seen     uint64    `json:"seen,omitzero"` // holds no lease whose record was broken at this revision or before
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

// sumMember begins the last member of a record, which tells one that was broken.
const sumMember = `,"sum":"`

// encode returns the record of a key. It ends with a sum over all before it and the key, so
// that a record with a bit changed, or one of another key, is not taken for what it says.
func encode(key string, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // not reached: strings, numbers and times
	}
	text = text[:len(text)-1]
	return fmt.Appendf(text, "%s%s\"}", sumMember, sum(key, text))
}

func sum(key string, text []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s", key, text)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

var errBroken = errors.New("it was not written by a replica, or was changed since")

// decode reads the record of a key. One without a sum is of an older release.
func decode(key string, text []byte, v any) error {
	if i := bytes.LastIndex(text, []byte(sumMember)); i >= 0 && string(text[i+len(sumMember):]) != sum(key, text[:i])+"\"}" {
		return errBroken
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

func decodeMember(key string, text []byte) (m Member, err error) {
	if err = decode(key, text, &m); err == nil && memberKey(m.ID) != key {
		err = errBroken
	}
	return m, err
}

func decodeLease(key string, text []byte) (l LeaseInfo, err error) {
	if err = decode(key, text, &l); err == nil && (leaseKey(l.Name) != key || l.Owner == "" || l.Epoch == 0) {
		err = errBroken
	}
	return l, err
}

// tag returns what stands for an ID in Knows: 40 bits of it, as a record of each beat
// goes to every replica.
func tag(id string) string { return id[:min(8, len(id))] }
