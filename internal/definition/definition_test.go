package definition

import "testing"

// Only the members that models or hosts use count.
func TestWhatCounts(t *testing.T) {
	const page = `,"_meta":{"ui":{"resourceUri":"ui://x/a"},"a":1}}`
	withPage := func(text string) string { return `{"name":"a","description":"Does."` + text }
	for _, texts := range [][3]string{ // the first two have the same digest, the third has another
		{withPage(page), withPage(`,"_meta":{"b":2,"ui":{"resourceUri":"ui://x/a"}},"icons":[]}`), withPage(`,"_meta":{"ui":{"resourceUri":"ui://x/b"},"a":1}}`)},
		{withPage(page), withPage(`,"_meta":{"u\u0069":{"resourceUri":"ui://x/a"}}}`), withPage(`}`)},
		{withPage(`,"_meta":{"a":1}}`), withPage(`}`), withPage(page)},
		{withPage(`,"_meta":null}`), withPage(`,"_meta":"ui"}`), withPage(`,"_meta":{},"_meta":{"ui":1}}`)},
		{withPage(`,"_meta":{"ui/resourceUri":"ui://a"}}`), withPage(`,"_meta":{"ui\/resourceUri":"ui://a","x":1}}`), withPage(`,"_meta":{"ui/resourceUri":"ui://b"}}`)},
		{withPage(`,"_meta":{"openai/outputTemplate":"ui://a"}}`), withPage(`,"_meta":{"x":{},"openai/outputTemplate":"ui://a"}}`), withPage(`,"_meta":{"openai/outputTemplate":"ui://b"}}`)},
	} {
		var digests [3]string
		for i, text := range texts {
			digests[i] = New("a", []byte(text), "").Digest
		}
		if digests[0] != digests[1] || digests[0] == digests[2] {
			t.Errorf("%q have the digests %q", texts, digests)
		}
	}
	const base = `{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	digest := New("a", []byte(base), "").Digest
	for text, same := range map[string]bool{
		`{"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object"},"inputSchema":{"type":"object"},"description":"D\u006fes.","title":"A","name":"a"}`:                      true,
		base[:len(base)-1] + `,"icons":[{"src":"x"}],"_meta":{"a":1}}`:                                                                                                                  true,
		`{"name":"a","title":"B","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                           false,
		`{"name":"a","title":"A","description":"Does","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                            false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object","x":1},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                     false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{},"annotations":{"readOnlyHint":true}}`:                                          false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}`:                          false,
		`{"name":"a","title":"A","description":"Does.","description":"Does all.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`: false,
		`{"name":"a","title":"A","descr\u0069ption":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                      true,
	} {
		if got := New("a", []byte(text), "").Digest == digest; got != same {
			t.Errorf("%s: the digest is the same: %t, want %t", text, got, same)
		}
	}
}
