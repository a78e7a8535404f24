package catalog

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/tokens"
)

// TestRetrieval keeps the quality of search above floors a little below the measured values.
// The comments give those of plain BM25: R@1 R@5 R@10 MRR.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name  string
		floor figures
	}{
		{"livemcpbench", figures{.22, .43, .50, .54, .60, .58}}, // plain BM25 .156 .345 .415 .446
		{"bfcl", figures{.66, .85, .91, .94, .96, .81}},         // plain BM25 .636 .844 .896 .781
		{"mcpproxy-go", figures{.53, .74, .87, .90, .91, .72}},  // plain BM25 .447 .684 .798 .585
	} {
		t.Run(set.name, func(t *testing.T) {
			v, ids, questions := labelled(t, set.name)
			got := measure(v, ids, questions)
			var answers []int
			for _, q := range questions {
				answers = append(answers, tokens.Count(v.Texts().Found(Search{Queries: []string{q.Query}})))
			}
			slices.Sort(answers)
			t.Logf("%d tools, %d queries: R@1 %.3f R@3 %.3f R@5 %.3f R@10 %.3f R@25 %.3f MRR %.3f; R@5 of the halves %.3f %.3f, of those of servers %.3f %.3f; tokens of an answer: median %d, worst %d",
				len(v.Tools()), len(questions), got.r1, got.r3, got.r5, got.r10, got.r25, got.mrr,
				measure(v, ids, half(questions, false)).r5, measure(v, ids, half(questions, true)).r5,
				measure(v, ids, ofServers(questions, false)).r5, measure(v, ids, ofServers(questions, true)).r5,
				answers[len(answers)/2], answers[len(answers)-1])
			if got.r1 < set.floor.r1 || got.r3 < set.floor.r3 || got.r5 < set.floor.r5 || got.r10 < set.floor.r10 || got.r25 < set.floor.r25 || got.mrr < set.floor.mrr {
				t.Errorf("got %+v, want at least %+v", got, set.floor)
			}
		})
	}
}

// half returns one half of the questions, by a hash of the query: parameters chosen by the
// first half are judged by the second.
func half(questions []question, second bool) (list []question) {
	for _, q := range questions {
		hash := fnv.New32a()
		hash.Write([]byte(q.Query))
		if (hash.Sum32()>>7&1 == 1) == second {
			list = append(list, q)
		}
	}
	return list
}

// ofServers returns the questions with what they need of one half of the servers, and without those that need
// nothing of it. Words that are learnt from the first half (bench/words -half 0) are judged by the second.
func ofServers(questions []question, second bool) (list []question) {
	for _, q := range questions {
		q.Gold = slices.DeleteFunc(slices.Clone(q.Gold), func(ok []string) bool {
			server, _, inSet := strings.Cut(ok[0], "/")
			if !inSet { // bfcl has functions of one server: their first word stands for one
				server, _, _ = strings.Cut(server, ".")
				server, _, _ = strings.Cut(server, "#")
			}
			hash := fnv.New32a()
			hash.Write([]byte(server))
			return (hash.Sum32()>>7&1 == 1) != second
		})
		if len(q.Gold) > 0 {
			list = append(list, q)
		}
	}
	return list
}
