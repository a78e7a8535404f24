package redact_test

import (
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
