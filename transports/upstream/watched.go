package upstream

import (
	"os"
	"sync/atomic"
	"time"
)

// A watched pipe knows since when someone waits for it to bring something.
type watched struct {
	*os.File
	since atomic.Int64 // in nanoseconds of the Unix era, 0 while nobody waits
}

func (w *watched) Read(p []byte) (int, error) {
	w.since.Store(time.Now().UnixNano())
	defer w.since.Store(0)
	return w.File.Read(p)
}

// settle returns when the pipe of a writer that is gone was read: to its end,
// or, where someone else holds that open, to where nothing comes any more. It
// takes as long as it takes to handle what was in the pipe.
func (w *watched) settle(read <-chan struct{}) {
	began := time.Now().UnixNano()
	ticker := time.NewTicker(quiet / 5)
	defer ticker.Stop()
	for {
		select {
		case <-read:
			return
		case now := <-ticker.C:
			since := w.since.Load()
			if since != 0 && now.UnixNano()-max(since, began) > int64(quiet) {
				return
			}
		}
	}
}
