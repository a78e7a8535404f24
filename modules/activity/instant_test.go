package activity

import (
	"testing"
	"time"
)

// --since begins with a day, and --until ends with one.
func TestInstant(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 1, 15, 30, 0, 0, zone)
	for _, c := range []struct {
		text, since, until string
	}{
		{"2h", "2026-03-01 13:30", "2026-03-01 13:30"},
		{"7d", "2026-02-22 15:30", "2026-02-22 15:30"},
		{"today", "2026-03-01 00:00", "2026-03-02 00:00"},
		{"yesterday", "2026-02-28 00:00", "2026-03-01 00:00"},
		{"2026-02-03", "2026-02-03 00:00", "2026-02-04 00:00"},
		{"2026-02-03 04:05", "2026-02-03 04:05", "2026-02-03 04:05"},
		{"2026-02-03T04:05:00Z", "2026-02-03 05:05", "2026-02-03 05:05"},
	} {
		for end, want := range map[bool]string{false: c.since, true: c.until} {
			got, err := instant(c.text, now, end)
			if err != nil || got.In(zone).Format("2006-01-02 15:04") != want {
				t.Errorf("%q, end %t: %v, %v, want %s", c.text, end, got, err, want)
			}
		}
	}
	for _, text := range []string{"", "-2h", "soon", "2026-13-01", "d"} {
		if got, err := instant(text, now, false); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
