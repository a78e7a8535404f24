package tap

import "testing"

// A tap without watchers costs no allocation. A watcher is shown every message until it stops.
func TestTap(t *testing.T) {
	var none *Tap
	if none.Watched() || none.Upstream("a") != (Connection{Server: "a"}) {
		t.Error("no tap is watched, or counts")
	}
	messages, conn, seen := &Tap{}, Connection{Session: "s"}, [2]int{}
	show := func() {
		if messages.Watched() {
			messages.Show(conn, true, []byte("a"), []byte("b"))
		}
	}
	if n := testing.AllocsPerRun(100, show); n != 0 {
		t.Errorf("%v allocations while nobody watches", n)
	}
	var stop [2]func()
	for i := range stop {
		stop[i] = messages.Watch(func(c Connection, in bool, pieces [][]byte) {
			if c == conn && in && len(pieces) == 2 {
				seen[i]++
			}
		})
	}
	show()
	stop[0]()
	show()
	stop[1]()
	show()
	if seen != [2]int{1, 2} || messages.Watched() {
		t.Errorf("seen %v", seen)
	}
}
