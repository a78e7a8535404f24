package catalog

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// variant is the factor of a tool's score for each better tool of its server whose
// name has the same words: what else there is comes before the next variant.
const variant = 0.85

// ranking is a heap of matches, the best first, those that score the same by name.
type ranking []Match

func (r ranking) Len() int           { return len(r) }
func (r ranking) Less(i, j int) bool { return byScore(r[i], r[j]) < 0 }
func (r ranking) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranking) Push(m any)        { *r = append(*r, m.(Match)) }
func (r *ranking) Pop() any {
	last := len(*r) - 1
	m := (*r)[last]
	*r = (*r)[:last]
	return m
}

func byScore(a, b Match) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Tool.Name, b.Tool.Name))
}

// best takes up to limit results out, and counts the tools that are left.
func (r *ranking) best(limit int) (found []Match, more int) {
	heap.Init(r)
	line := map[string]int{}     // name of a tool → its result
	variants := map[string]int{} // server and words of a name → how many results have them
	lowered := map[*Tool]int{}   // by how many of these its score was lowered
	for len(found) < limit && len(*r) > 0 {
		m := &(*r)[0]
		if i, same := line[m.Tool.Leaf]; same && found[i].Tool.Server != m.Tool.Server {
			found[i].Also = append(found[i].Also, m.Tool)
			heap.Pop(r)
			continue
		}
		words := m.Tool.Server + "/" + nameWithoutNumbers(m.Tool)
		if n := variants[words]; lowered[m.Tool] < n {
			for ; lowered[m.Tool] < n; lowered[m.Tool]++ {
				m.Score *= variant
			}
			heap.Fix(r, 0)
			continue
		}
		variants[words]++
		line[m.Tool.Leaf] = len(found)
		found = append(found, heap.Pop(r).(Match))
	}
	// What is left and has the name of a result belongs to it.
	var also ranking
	for _, m := range *r {
		if i, same := line[m.Tool.Leaf]; same && found[i].Tool.Server != m.Tool.Server {
			also = append(also, m)
		}
	}
	slices.SortFunc(also, byScore)
	for _, m := range also {
		i := line[m.Tool.Leaf]
		found[i].Also = append(found[i].Also, m.Tool)
	}
	return found, len(*r) - len(also)
}

// nameWithoutNumbers are the words of a tool's name but those that only count:
// "get_page_2" is a variant of "get_page".
func nameWithoutNumbers(t *Tool) string {
	words := slices.DeleteFunc(slices.Clone(t.terms), func(w string) bool { return strings.Trim(w, "0123456789") == "" })
	return strings.Join(words, " ")
}
