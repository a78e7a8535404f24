package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv/memkv"
	"github.com/dynmcp/dynmcp/schema"
)

// A record that is read or written now and then stays, one of a server that nobody uses
// any more is gone one day. It is written once a week at most.
func TestRecordsThatNobodyUsesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket, err := memkv.New().Connect().Bucket(t.Context(), "catalog")
		if err != nil {
			t.Fatal(err)
		}
		s := Shared(&schema.Config{}, bucket)
		read, written, left := schema.Server{Name: "read"}, schema.Server{Name: "written"}, schema.Server{Name: "left"}
		for _, server := range []schema.Server{read, written, left} {
			if err := s.Keep(server, listing(read1)); err != nil {
				t.Fatal(err)
			}
		}
		revision := func(server schema.Server) uint64 {
			e, err := bucket.Get(t.Context(), Key(server))
			if err != nil {
				t.Fatalf("the record of %s: %v", server.Name, err)
			}
			return e.Revision
		}
		use := func() {
			if stored, err := s.Load(read); err != nil || stored == nil {
				t.Fatalf("got %v, %v", stored, err)
			}
			if err := s.Keep(written, listing(read1)); err != nil {
				t.Fatal(err)
			}
		}
		first := revision(read) + revision(written)
		time.Sleep(renewed - time.Hour)
		use()
		if got := revision(read) + revision(written); got != first {
			t.Error("they are written anew each time")
		}
		for range 5 {
			time.Sleep(unused / 2)
			use()
		}
		if stored, err := s.Load(left); stored != nil || err != nil {
			t.Errorf("of the server that nobody uses there is %v, %v", stored, err)
		}
	})
}
