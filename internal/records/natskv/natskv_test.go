package natskv

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
	"github.com/dynmcp/dynmcp/internal/records"
)

// patience is how long a step may take on a busy machine.
const patience = 120 * time.Second

func TestMain(m *testing.M) { mcptest.Main(m) }

// open opens a bucket. With several nodes it waits for the election of leaders.
func open(t *testing.T, s *Store) writer {
	t.Helper()
	var b records.Bucket
	eventually(t, "the bucket", func() (err error) { b, err = s.Bucket(t.Context(), "state"); return err })
	return b.(writer)
}

// eventually calls try until it returns no error.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// The chunks of a value that was replaced, deleted or not stored are removed.
func TestChunksThatNobodyNeedsGo(t *testing.T) {
	t.Parallel()
	s, err := Open(StoreOptions{URLs: []string{natstest.Start(t, "").URL}, answer: patience / 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	a := open(t, s)
	ctx := t.Context()
	messages := func() uint64 {
		t.Helper()
		info, err := a.stream.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	value := make([]byte, 2<<20)
	first, err := a.Create(ctx, "x", value)
	if err != nil {
		t.Fatal(err)
	}
	whole := messages() // a record and its chunks
	second, err := a.Update(ctx, "x", value, first)
	if n := messages(); err != nil || n != whole {
		t.Errorf("after a value of the same size there are %d messages, not %d (%v)", n, whole, err)
	}
	if _, err := a.Update(ctx, "x", value, first); !errors.Is(err, records.ErrConflict) || messages() != whole {
		t.Errorf("after a conflict there are %d messages, not %d (%v)", messages(), whole, err)
	}
	third, err := a.Update(ctx, "x", nil, second)
	if err != nil || messages() != 1 {
		t.Errorf("after a small value there are %d messages (%v)", messages(), err)
	}
	if _, err = a.Update(ctx, "x", value, third); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx, "x", 0); err != nil || messages() != 1 {
		t.Errorf("after a deletion there are %d messages (%v)", messages(), err)
	}
	// A value may look like a reference.
	fake := reference + "none 1 1"
	if _, err := a.Create(ctx, "y", []byte(fake)); err != nil {
		t.Fatal(err)
	}
	if e, err := a.Get(ctx, "y"); err != nil || string(e.Value) != fake {
		t.Errorf("got %q, %v", e.Value, err)
	}
	// A record whose chunks were lost is an error.
	a.drop(ctx, a.note("y", ""))
	if e, err := a.Get(ctx, "y"); !errors.Is(err, errNoChunk) {
		t.Errorf("got %q, %v", e.Value, err)
	}
}

// A list of a prefix does not read the large values of other records.
func TestAListReadsNoLargeValuesOfOthers(t *testing.T) {
	t.Parallel()
	s, err := Open(StoreOptions{URLs: []string{natstest.Start(t, "").URL}, answer: patience / 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b := open(t, s)
	const large = 8 << 20
	if _, err := b.Put(t.Context(), "other/large", make([]byte, large)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "mine/small", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for prefix, reads := range map[string]bool{"mine/": false, "other/": true} {
		before := s.conn.Stats().InBytes
		list, err := records.List(t.Context(), b, prefix)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: got %d records, %v", prefix, len(list), err)
		}
		if read := s.conn.Stats().InBytes - before; (read >= large) != reads || !reads && read > large/100 {
			t.Errorf("%s: %d bytes were read", prefix, read)
		}
	}
}

// A request that NATS refuses is not ErrUnavailable, and its error has the words of NATS.
func TestWhatNATSRefuses(t *testing.T) {
	t.Parallel()
	node := natstest.Start(t, `authorization { users: [ { user: us, password: x, permissions: { publish: { allow: ">", deny: "$KV.dynmcp_denied.>" }, subscribe: ">" } } ] }`)
	store, err := Open(StoreOptions{URLs: []string{strings.Replace(node.URL, "//", "//us:x@", 1)}, Logger: nil})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   string
	}{
		"full":   {func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 100, jetstream.DiscardNew }, "maximum bytes exceeded"},
		"large":  {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 }, "message size exceeds maximum allowed"},
		"sealed": {func(c *jetstream.StreamConfig) { c.Sealed = true }, "sealed stream"},
		"denied": {func(*jetstream.StreamConfig) {}, "permissions violation"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := store.Bucket(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := store.js.Stream(t.Context(), "KV_dynmcp_"+name)
			if err != nil {
				t.Fatal(err)
			}
			config := stream.CachedInfo().Config
			c.change(&config)
			if _, err := store.js.UpdateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			_, err = b.Put(t.Context(), "key", make([]byte, 1000))
			if err == nil || errors.Is(err, records.ErrUnavailable) || !strings.Contains(err.Error(), "NATS refuses it") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want that NATS refuses it: %s", err, c.want)
			}
		})
	}
}

// A bucket of another layout is refused, and not changed.
func TestABucketOfAnotherLayout(t *testing.T) {
	t.Parallel()
	s, err := Open(StoreOptions{URLs: []string{natstest.Start(t, "").URL}, answer: patience / 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	create := func(name string, create func(jetstream.StreamConfig) error) {
		t.Helper()
		eventually(t, "another layout", func() error { return create((&bucket{name: "dynmcp_" + name}).config(1)) })
		before, err := s.js.Stream(t.Context(), "KV_dynmcp_"+name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bucket(t.Context(), name); err == nil || errors.Is(err, records.ErrUnavailable) || !strings.Contains(err.Error(), "KV_dynmcp_"+name+" in NATS has another layout") {
			t.Errorf("%s: got %v", name, err)
		}
		after, err := before.Info(t.Context())
		if err != nil || !reflect.DeepEqual(after.Config, before.CachedInfo().Config) {
			t.Errorf("%s: it was changed (%v)", name, err)
		}
	}
	stream := func(c jetstream.StreamConfig) error {
		_, err := s.js.CreateStream(t.Context(), c)
		return err
	}
	create("library", func(jetstream.StreamConfig) error {
		_, err := s.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "dynmcp_library"})
		return err
	})
	create("endless", func(c jetstream.StreamConfig) error { c.AllowMsgTTL = false; return stream(c) })
	create("history", func(c jetstream.StreamConfig) error { c.MaxMsgsPerSubject = 2; return stream(c) })
	create("whole", func(c jetstream.StreamConfig) error { c.Subjects = c.Subjects[:1]; return stream(c) })
}
