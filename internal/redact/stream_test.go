package redact_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/redact"
)

// Nothing of a secret is visible, however secrets overlap and wherever a stream is split. The
// secrets consist of letters that nothing else has.
func TestNothingOfASecretIsVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("XYZ")), 6, 12, -1), 1, 3).Draw(t, "secrets")
		values = append(values, values[0]+rapid.StringOfN(rapid.RuneFrom([]rune("XYZ")), 0, 30, -1).Draw(t, "longer"))
		var r redact.Redactor
		r.Add(values...)
		var text strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "parts") {
			text.WriteString(rapid.SampledFrom([]string{".", "-- --", ""}).Draw(t, "between"))
			secret := rapid.SampledFrom(values).Draw(t, "secret")
			overlaps := rapid.SampledFrom(values).Draw(t, "next")
			for n := min(len(secret), len(overlaps)) - 1; n > 0; n-- {
				if strings.HasSuffix(secret, overlaps[:n]) {
					secret += overlaps[n:]
					break
				}
			}
			text.WriteString(secret)
		}
		plain := func(s string) string { return strings.ReplaceAll(s, redact.Mark, "") }
		want := strings.NewReplacer("X", "", "Y", "", "Z", "").Replace(text.String())
		if got := r.String(text.String()); plain(got) != want {
			t.Fatalf("%q became %q", text.String(), got)
		}
		var out strings.Builder
		rest := ""
		for left := text.String(); left != ""; {
			n := rapid.IntRange(1, len(left)).Draw(t, "piece")
			safe, more := r.Split(rest + left[:n])
			if len(more) > 2*200 {
				t.Fatalf("%d bytes are kept", len(more))
			}
			out.WriteString(safe)
			rest, left = more, left[n:]
		}
		if got := out.String() + r.String(rest); plain(got) != want {
			t.Fatalf("%q became %q in pieces", text.String(), got)
		}
	})
}

// A stream shows what cannot be the beginning of a secret, and keeps no more than that.
func TestAStreamShowsWhatItCan(t *testing.T) {
	const secret = "token123-and-more-secret"
	var r redact.Redactor
	r.Add("token123", secret)
	longest := len(hex.EncodeToString([]byte(secret)))
	dots := func(n int) string { return strings.Repeat(".", n) }
	for _, test := range []struct{ text, safe, rest string }{
		{"x token123", "", "x token123"},
		{"x" + dots(longest-1), "x", dots(longest - 1)},
		{"x token123-and-more-secret done" + dots(longest-1), "x [redacted] done", dots(longest - 1)},
		{"x token123" + dots(longest-1), "x [redacted]", dots(longest - 1)},                    // one ends where the text is cut
		{"x token123" + dots(longest-1-len("token123")), "x ", "token123" + dots(longest-1-8)}, // one begins there
		{"xy token123" + dots(longest-7), "xy ", "token123" + dots(longest-7)},                 // one is in both parts
		{"x token123-and-more-secret" + dots(longest-2), "x ", secret + dots(longest-2)},       // and this one
		{secret + secret + dots(longest-1), "[redacted][redacted]", dots(longest - 1)},
	} {
		if safe, rest := r.Split(test.text); safe != test.safe || rest != test.rest {
			t.Errorf("%q became %q and %q, want %q and %q", test.text, safe, rest, test.safe, test.rest)
		}
	}
}
