package catalog

import "testing"

// TestRetrieval keeps the quality of search: floors a little under what was
// reached. Plain BM25 over the complete sets is given beside them.
func TestRetrieval(t *testing.T) {
	for _, set := range []struct {
		name  string
		floor figures
	}{
		{"livemcpbench", figures{.20, .46, .52, .56}}, // plain BM25 .156 .345 .415 .446
		{"bfcl", figures{.63, .85, .90, .78}},         // plain BM25 .636 .844 .896 .781
		{"mcpproxy-go", figures{.48, .79, .83, .67}},  // plain BM25 .447 .684 .798 .585
	} {
		t.Run(set.name, func(t *testing.T) {
			v, ids, questions := labelled(t, set.name)
			got := measure(v, ids, questions)
			t.Logf("%d tools, %d queries: R@1 %.3f R@5 %.3f R@10 %.3f MRR %.3f",
				len(v.Tools()), len(questions), got.r1, got.r5, got.r10, got.mrr)
			if got.r1 < set.floor.r1 || got.r5 < set.floor.r5 || got.r10 < set.floor.r10 || got.mrr < set.floor.mrr {
				t.Errorf("got %+v, want at least %+v", got, set.floor)
			}
		})
	}
}
