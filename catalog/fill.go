package catalog

import "sort"

// A level is how much detail a text shows, in steps of one unit for one item: the first
// step is for the first item, the second for the second, and after the last item it is
// the first one's turn again. So items differ by one step at most, and one step costs
// little. The largest level that fits is found by bisection.
type level int

// raised returns how many steps item i of n has had.
func (l level) raised(i, n int) int {
	rounds := int(l) / n
	if i < int(l)%n {
		rounds++
	}
	return rounds
}

// highest returns the highest level at which a text fits, of those at which all
// of n items have had at most rounds steps; below 0 if not even level 0 fits.
func highest(n, rounds int, fits func(level) bool) level {
	if !fits(0) {
		return -1
	}
	return level(sort.Search(n*rounds, func(l int) bool { return !fits(level(l + 1)) }))
}

// The least that is worth showing, in units: of a server's words, and of a
// tool's line.
const (
	leastWords = 12
	leastLine  = 40
)

// wordsAt tells how many units of its words each of n servers shows at a level.
func (l level) wordsAt(n int) func(i int) int {
	return func(i int) int {
		if raised := l.raised(i, n); raised > 0 {
			return leastWords + raised - 1
		}
		return 0
	}
}

// shorten finds how many of n servers a text can name and, if that is all, how
// much it can show of their words, of which the longest has so many units. It
// reports whether that is everything.
func shorten(n, longest int, fits func(named int, words func(i int) int) bool) (named int, words func(i int) int, whole bool) {
	named = int(highest(1, n, func(l level) bool { return fits(int(l), none) }))
	if named < n {
		return named, none, false
	}
	rounds := max(longest-leastWords, 0) + 1
	best := highest(n, rounds, func(l level) bool { return fits(n, l.wordsAt(n)) })
	return n, best.wordsAt(n), int(best) == n*rounds
}

func all(int) int  { return 1 << 30 }
func none(int) int { return 0 }
