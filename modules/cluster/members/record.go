package members

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Member is the record of a replica, which is rewritten with every heartbeat.
type Member struct {
	ID         string    `json:"id"`      // random, of one process
	Name       string    `json:"name"`    // for people
	Address    string    `json:"address"` // host:port where other replicas reach it
	Version    string    `json:"version"` // of the program
	Since      time.Time `json:"since"`   // when it joined, by its own clock
	Epoch      uint64    `json:"epoch"`   // increases after all its leases were lost
	Draining   bool      `json:"draining,omitzero"`
	Load       Load      `json:"load,omitzero"`
	Heartbeats uint64    `json:"beat"`          // counts heartbeats
	Seen       uint64    `json:"seen,omitzero"` // it holds no lease whose record was broken at this or an earlier revision
}

// Load is the load of a replica.
type Load struct {
	Sessions int `json:"sessions,omitzero"` // of hosts
	Servers  int `json:"servers,omitzero"`  // running on the replica
	Calls    int `json:"calls,omitzero"`    // in flight
}

// LeaseInfo is the record of a lease.
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

// leaseKey returns the key of a lease for a name of any bytes: letters, digits, "-" and "_" stand
// for themselves, another byte is "=" and two digits. For an empty name, or one that is too
// long for a key, it is "=s" and a digest.
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

// sumMember begins the last member of a record, its checksum.
const sumMember = `,"sum":"`

// encode returns the record of a key. It ends with a checksum over the key and the text, so
// that a record with a flipped bit, or one of another key, is refused.
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

// decode parses the record of a key.
func decode(key string, text []byte, v any) error {
	if i := bytes.LastIndex(text, []byte(sumMember)); i < 0 || string(text[i+len(sumMember):]) != sum(key, text[:i])+"\"}" {
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
