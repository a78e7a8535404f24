package search

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// variant is the factor of a tool's score for each better tool of its server with the same
// words in its name: other tools come before the next variant.
const variant = 0.8

// ranking is a heap of tools: the best first, equal scores by name.
type ranking []ranked

type ranked struct {
	tool  *Tool
	score float64
}

func (r ranking) Len() int           { return len(r) }
func (r ranking) Less(i, j int) bool { return byScore(r[i], r[j]) < 0 }
func (r ranking) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranking) Push(x any)        { *r = append(*r, x.(ranked)) }
func (r *ranking) Pop() any {
	last := len(*r) - 1
	m := (*r)[last]
	*r = (*r)[:last]
	return m
}

func byScore(a, b ranked) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(a.tool.Name, b.tool.Name)
}

// favour raises the tools of servers that other queries of the call name.
func (r ranking) favour(servers []string) {
	best := r.top()
	for i := range r {
		if slices.Contains(servers, r[i].tool.Server) {
			r[i].score += together * best
		}
	}
}

// top returns the best score. The bonus of an exact name does not count: it says nothing about other
// tools.
func (r ranking) top() (best float64) {
	for _, x := range r {
		best = max(best, math.Mod(x.score, exactName))
	}
	return best
}

// enough is the share of the best score that a result needs.
const enough = 0.2

// dropLow drops the tools that score little beside the best.
func (r *ranking) dropLow() {
	best := r.top()
	*r = slices.DeleteFunc(*r, func(x ranked) bool { return x.score < enough*best })
}

// best removes and returns up to limit results, and counts the tools that are left.
func (r *ranking) best(limit int) (found []Match, more int) {
	heap.Init(r)
	line := map[string]int{}     // name of a tool → its result
	variants := map[string]int{} // server and words of a name → how many results have them
	lowered := map[*Tool]int{}   // how many of these have lowered its score
	for len(found) < limit && len(*r) > 0 {
		top := &(*r)[0]
		t := top.tool
		if i, same := line[t.Leaf]; same && found[i].Tool.Server != t.Server {
			found[i].Also = append(found[i].Also, t)
			heap.Pop(r)
			continue
		}
		words := t.Server + "/" + nameWithoutNumbers(t)
		if n := variants[words]; lowered[t] < n {
			for ; lowered[t] < n; lowered[t]++ {
				top.score *= variant
			}
			heap.Fix(r, 0)
			continue
		}
		variants[words]++
		line[t.Leaf] = len(found)
		found = append(found, Match{Tool: t, Score: top.score})
		heap.Pop(r)
	}
	// A tool that is left and has the name of a result belongs to it. Comparing lengths
	// first is fast.
	const maxLength = 128
	var lengths [maxLength + 1]bool
	for leaf := range line {
		lengths[min(len(leaf), maxLength)] = true
	}
	var also ranking
	for _, x := range *r {
		if !lengths[min(len(x.tool.Leaf), maxLength)] {
			continue
		}
		if i, same := line[x.tool.Leaf]; same && found[i].Tool.Server != x.tool.Server {
			also = append(also, x)
		}
	}
	slices.SortFunc(also, byScore)
	for _, x := range also {
		i := line[x.tool.Leaf]
		found[i].Also = append(found[i].Also, x.tool)
	}
	return found, len(*r) - len(also)
}

// nameWithoutNumbers returns the words of a tool's name without numbers: "get_page_2" is a
// variant of "get_page".
func nameWithoutNumbers(t *Tool) string {
	words := slices.DeleteFunc(slices.Clone(t.Terms), func(w string) bool { return strings.Trim(w, "0123456789") == "" })
	return strings.Join(words, " ")
}

// Rank returns the elements whose texts have a word of the query or a synonym, best first by
// BM25. says returns the term counts of the text of an element.
func Rank[T comparable](query string, all []T, says func(T) map[string]float64) []T {
	average, has := 0.0, map[string]float64{}
	for _, x := range all {
		for w := range says(x) {
			has[w]++
		}
		average += float64(len(says(x))) / float64(len(all))
	}
	scores := map[T]float64{}
	var fit []T
	for _, x := range all {
		counts := says(x)
		norm := 1.2 * (0.25 + 0.75*float64(len(counts))/max(average, 1))
		worth := func(w string) float64 {
			n := counts[w]
			return idf(has[w], float64(len(all))) * n / (norm + n)
		}
		for _, w := range Terms(query[:min(len(query), longestQuery)]) {
			if stopWords()[w] {
				continue
			}
			best := 0.0
			for _, other := range synonyms()[w] {
				best = max(best, alike*worth(other))
			}
			scores[x] += max(worth(w), best)
		}
		if scores[x] > 0 {
			fit = append(fit, x)
		}
	}
	slices.SortStableFunc(fit, func(a, b T) int { return cmp.Compare(scores[b], scores[a]) })
	return fit
}
