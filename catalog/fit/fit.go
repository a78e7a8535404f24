// Package fit finds how much detail a text of bounded size can show.
package fit

import "sort"

// A Level is an amount of detail in a text, in steps of one unit for one item. The first step
// is for the first item, the second for the second; after the last item the first has its
// turn again. So items differ by at most one step, and one step costs little. The largest
// level that fits is found by bisection.
type Level int

// Raised returns how many steps item i of n has had.
func (l Level) Raised(i, n int) int {
	rounds := int(l) / n
	if i < int(l)%n {
		rounds++
	}
	return rounds
}

// Highest returns the highest level that fits and gives each of n items at most rounds steps,
// or -1 if level 0 does not fit.
func Highest(n, rounds int, fits func(Level) bool) Level {
	if !fits(0) {
		return -1
	}
	return Level(sort.Search(n*rounds, func(l int) bool { return !fits(Level(l + 1)) }))
}

// The least that is worth showing, in units, of a server's words and of a tool's line.
const (
	LeastWords = 12
	LeastLine  = 40
)

// wordsAt returns how many units of its words each of n servers shows at a level.
func (l Level) wordsAt(n int) func(i int) int {
	return func(i int) int {
		if raised := l.Raised(i, n); raised > 0 {
			return LeastWords + raised - 1
		}
		return 0
	}
}

// Shorten finds how many of n servers a text can name and, if it can name all, how many units
// of words it can show for each. The longest words have longest units. whole reports whether
// everything fits.
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
