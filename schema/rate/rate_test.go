package rate

import (
	"fmt"
	"testing"
	"time"
)

// What is written is read again, in its shortest form.
func TestRatesAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{
		"60/m": "60/m", "10/1s": "10/s", "5/30s": "5/30s", "100/60m": "100/h", "1/90m": "1/1h30m", "2/1h0m5s": "2/1h0m5s", "7/24h": "7/24h", "3/500ms": "3/500ms", "0": "0",
	} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, r, err, want)
		}
	}
	var r Rate
	if err := r.UnmarshalText([]byte("60/m")); err != nil || r != (Rate{60, time.Minute}) {
		t.Errorf("60/m: got %+v, %v", r, err)
	}
	for _, text := range []string{"", "60", "/m", "m", "-1/m", "0/m", "60/", "60/0s", "60/-1s", "60/ms/s", "1e3/m", "60/d", "60/mm", "60 / m", fmt.Sprint(MaxCalls+1, "/h"), "1/24h1s"} {
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, r)
		}
	}
}
