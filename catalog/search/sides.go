package search

import (
	"slices"
	"strings"
	"sync"
)

// A query for one thing may also name the server and the action. A longer text names many
// things, so neither is known.
const (
	oneThing = 12  // most different terms of such a query
	named    = 2.0 // weight of a term of the server that the query names, added to fromServer
	opposite = 0.7 // factor of a tool whose name says the opposite of the query
)

// sides are the words of a query's verb, which a tool's name may have, and those of opposite
// verbs, which it should not.
type sides struct{ own, other map[string]bool }

// takeSides reads the verb of a query, which is its first word but stop words, and "on" and
// "off" anywhere in it.
func takeSides(asked []string) (s sides) {
	first := slices.IndexFunc(asked, func(w string) bool { return !stopWords()[w] })
	if first < 0 || len(asked) > oneThing {
		return s
	}
	verbs := []string{asked[first]}
	for _, w := range []string{"on", "off"} {
		if slices.Contains(asked, w) {
			verbs = append(verbs, w)
		}
	}
	s = sides{map[string]bool{}, map[string]bool{}}
	for _, opposed := range opposites() {
		for i, side := range opposed {
			if slices.ContainsFunc(side, func(w string) bool { return slices.Contains(verbs, w) }) {
				s.add(opposed, i)
			}
		}
	}
	return s
}

// add adds the words of one side as own, and those of the others as opposite.
func (s sides) add(opposed [][]string, own int) {
	for i, side := range opposed {
		words := s.other
		if i == own {
			words = s.own
		}
		for _, w := range side {
			words[w] = true
		}
	}
}

// oppose reports whether a tool's name says the opposite of the query.
func (s sides) oppose(t *Tool) bool {
	if len(s.other) == 0 || slices.ContainsFunc(t.Terms, func(w string) bool { return s.own[w] }) {
		return false
	}
	return slices.ContainsFunc(t.Terms, func(w string) bool { return s.other[w] })
}

// opposites are groups of terms of verbs with opposite meanings.
var opposites = sync.OnceValue(func() (all [][][]string) {
	for line := range strings.Lines(opposed) {
		var sides [][]string
		for side := range strings.SplitSeq(line, "/") {
			sides = append(sides, Terms(side))
		}
		all = append(all, sides)
	}
	return all
})

const opposed = `create add insert new / list get read show query search find view / update edit change modify set turn toggle switch / delete remove drop destroy erase
close resolve / open create
start launch / stop terminate kill
enable on activate / disable off deactivate
lock protect / unlock unprotect
install / uninstall
upload / download
import / export
read / write edit
approve / unapprove reject
send / receive
connect / disconnect
login / logout
publish deploy / unpublish rollback
pause / resume
encode / decode
encrypt / decrypt`

// namesServer reports whether a query for one thing names a server: it has all words of the
// server's name but common ones.
func (q *searching) namesServer(s Server) bool {
	all := len(q.asked) <= oneThing
	some := false
	for _, w := range s.Terms {
		if !stopWords()[w] && w != "mcp" && w != "server" {
			some, all = true, all && slices.Contains(q.asked, w)
		}
	}
	return some && all
}

// AsksForSeveral reports whether a query is long enough to name several things.
func AsksForSeveral(query string) bool {
	return len(Terms(query[:min(len(query), longestQuery)])) > oneThing
}

// isAsking reports whether a term at the beginning of a query asks what something is now: then
// tools for what is current fit, and those that take it as an argument do not.
func isAsking(term string) bool {
	switch term {
	case "what", "which", "how", "who", "where", "when", "is", "ar":
		return true
	}
	return false
}
