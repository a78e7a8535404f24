//go:build e2e && (linux || darwin)

package box

import (
	"testing"
	"time"
)

// A connection without the password ends soon, if it sends nothing and if it goes on sending.
func TestPasswordWithin(t *testing.T) {
	p, _ := open(t, "127.0.0.1:1")
	silent, _ := knock(t, p, "")
	talks, _ := knock(t, p, "GET http://a.example/ HTTP/1.1\r\n")
	began := time.Now()
	go func() {
		for err := error(nil); err == nil; time.Sleep(passwordWithin / 10) {
			_, err = talks.Write([]byte("a: b\r\n"))
		}
	}()
	if err := atEnd(silent); err != nil {
		t.Error(err)
	}
	if err := atEnd(talks); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < passwordWithin/2 {
		t.Errorf("they ended after %v", took)
	}
}
