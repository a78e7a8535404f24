package atomicfile_test

import (
	"bytes"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// A reader gets one of the texts whole while the file is replaced, as processes that share a login
// do. Windows refuses to replace a file that is open.
func TestReplaceWhatIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	texts := [][]byte{bytes.Repeat([]byte("a"), 1<<14), bytes.Repeat([]byte("b"), 1<<15)}
	if err := atomicfile.Replace(path, texts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			got, err := regular.Read(t.Context(), path, regular.Small)
			if err != nil || !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
				t.Errorf("read %d bytes: %v", len(got), err)
				return
			}
		}
	})
	for i := range 100 {
		if err := atomicfile.Replace(path, texts[i%2], 0o600); err != nil {
			t.Error(err)
			break
		}
	}
	close(ended)
	reader.Wait()
}
