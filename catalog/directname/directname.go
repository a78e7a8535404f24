// Package directname makes the names of tools among all tools of all servers, as the direct surface
// lists them.
package directname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// Max is the longest name. Some hosts take only shorter ones.
const Max = 64

var (
	fits       = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	unfit      = lazyregexp.New(`[^A-Za-z0-9_-]`)
	endsInHash = lazyregexp.New(`_[0-9a-f]{8}$`)
)

// Of returns a tool's name: server__tool, or the name alone without a server. An invalid or
// ambiguous name is made valid and gets a hash of the exact one. The name depends only on the
// tool, so it is the same whatever else is loaded.
func Of(server, leaf string) string {
	full := leaf
	if server != "" {
		full = server + "__" + leaf
	}
	// A server name without "_" ends at the first "__". A plain name that looks
	// hashed is hashed too: no tool can take another's name.
	if !strings.Contains(server, "_") && fits().MatchString(full) && !IsHashed(full) {
		return full
	}
	fit := Plain(full)
	return fit[:min(len(fit), Max-hashLen)] + hash(full)
}

// Plain returns a name with "_" for each character that no name has.
func Plain(name string) string { return unfit().ReplaceAllString(name, "_") }

// IsHashed reports whether a name ends as one with a hash does.
func IsHashed(name string) bool { return endsInHash().MatchString(name) }

// hashLen is the length of what hash returns.
const hashLen = 9

func hash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "_" + hex.EncodeToString(sum[:4])
}

// Short returns a name for a host that allows at most longest characters, from 16 to Max. A name
// that is cut ends in a hash of the exact name.
func Short(name string, longest int) string {
	switch {
	case len(name) <= longest:
		return name
	case IsHashed(name): // of the exact name, which is longer still or has other characters
		return name[:longest-hashLen] + name[len(name)-hashLen:]
	}
	return name[:longest-hashLen] + hash(name)
}

// IsShort reports whether short is the result of Short for a longer name.
func IsShort(short, name string) bool {
	stem := len(short) - hashLen
	return stem > 0 && len(short) < len(name) && short[:stem] == name[:stem] && IsHashed(short) && Short(name, len(short)) == short
}
