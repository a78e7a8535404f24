// Package fit finds how much detail a text of bounded size can show.
package fit

import "sort"

// A Level is how much detail a text shows, in steps of one unit for one item: the first
// step is for the first item, the second for the second, and after the last item it is
// the first one's turn again. So items differ by one step at most, and one step costs
// little. The largest level that fits is found by bisection.
type Level int

// Raised returns how many steps item i of n has had.
func (l Level) Raised(i, n int) int {
	rounds := int(l) / n
	if i < int(l)%n {
		rounds++
	}
	return rounds
}

// Highest returns the Highest level at which a text fits, of those at which all
// of n items have had at most rounds steps; below 0 if not even level 0 fits.
func Highest(n, rounds int, fits func(Level) bool) Level {
	if !fits(0) {
		return -1
	}
	return Level(sort.Search(n*rounds, func(l int) bool { return !fits(Level(l + 1)) }))
}

// The least that is worth showing, in units: of a server's words, and of a
// tool's line.
const (
	LeastWords = 12
	LeastLine  = 40
)

// wordsAt tells how many units of its words each of n servers shows at a level.
func (l Level) wordsAt(n int) func(i int) int {
	return func(i int) int {
		if raised := l.Raised(i, n); raised > 0 {
			return LeastWords + raised - 1
		}
		return 0
	}
}

// Shorten finds how many of n servers a text can name and, if that is all, how
// much it can show of their words, of which the longest has so many units. It
// reports whether that is everything.
func Shorten(n, longest int, fits func(named int, words func(i int) int) bool) (named int, words func(i int) int, whole bool) {
	named = int(Highest(1, n, func(l Level) bool { return fits(int(l), None) }))
	if named < n {
		return named, None, false
	}
	rounds := max(longest-LeastWords, 0) + 1
	best := Highest(n, rounds, func(l Level) bool { return fits(n, l.wordsAt(n)) })
	return n, best.wordsAt(n), int(best) == n*rounds
}

// All and None are how much is shown of each item.
func All(int) int  { return 1 << 30 }
func None(int) int { return 0 }
