package store

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/schema"
)

// A record that is read or written from time to time stays, and is written at most once a
// week. An unused one expires.
func TestUnusedRecordsExpire(t *testing.T) {
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
			t.Error("each use writes the records again")
		}
		for range 5 {
			time.Sleep(unused / 2)
			use()
		}
		if stored, err := s.Load(left); stored != nil || err != nil {
			t.Errorf("the unused server has %v, %v", stored, err)
		}
	})
}

// Watch reports what other replicas store, and not what this one has read, stored or renewed.
func TestWatchReportsListingsOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := memkv.New()
		connect := func() *Listings {
			bucket, err := shared.Connect().Bucket(t.Context(), "catalog")
			if err != nil {
				t.Fatal(err)
			}
			return Shared(&schema.Config{}, bucket)
		}
		ours, theirs := connect(), connect()
		a, b := schema.Server{Name: "a"}, schema.Server{Name: "b"}
		keep := func(s *Listings, server schema.Server, tools ...string) {
			t.Helper()
			if err := s.Keep(server, listing(tools...)); err != nil {
				t.Fatal(err)
			}
		}
		keep(theirs, a, read1)
		if _, err := ours.Load(a); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reported []string
		ended := make(chan error)
		go func() {
			ended <- ours.Watch(ctx, func(key string, stored *catalog.Stored, err error) {
				if err != nil || stored == nil {
					t.Errorf("Watch reports %v, %v", stored, err)
				}
				reported = append(reported, key)
			})
		}()
		expect := func(after string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(reported, want) {
				t.Errorf("after %s Watch reported %q, want %q", after, reported, want)
			}
			reported = nil
		}
		expect("reading the records")
		keep(theirs, b, read1)
		expect("another replica stored a listing", Key(b))
		keep(ours, b, read1, `{"name":"write"}`)
		expect("storing a listing here")
		keep(theirs, b, read1)
		expect("another replica replaced it", Key(b))
		time.Sleep(renewed)
		if _, err := ours.Load(a); err != nil {
			t.Fatal(err)
		}
		expect("renewing a record here")
		keep(theirs, a)
		expect("another replica replaced that record", Key(a))
		cancel()
		<-ended
	})
}

// The bucket is used unless the config disables the store.
func TestSharedIsNilWithTheStoreDisabled(t *testing.T) {
	t.Parallel()
	bucket, err := memkv.New().Connect().Bucket(t.Context(), "catalog")
	if err != nil {
		t.Fatal(err)
	}
	none, some := "", "somewhere"
	for _, test := range []struct {
		name   string
		config schema.Config
		on     bool
	}{
		{"without a directory", schema.Config{}, true},
		{"with a directory", schema.Config{Catalog: schema.Catalog{Dir: &some}}, true},
		{"with the store disabled", schema.Config{Catalog: schema.Catalog{Dir: &none}}, false},
		{"in single-wrap mode", schema.Config{SingleWrap: true}, false},
	} {
		if got := Shared(&test.config, bucket) != nil; got != test.on {
			t.Errorf("%s: there is a store: %t, want %t", test.name, got, test.on)
		}
	}
}
