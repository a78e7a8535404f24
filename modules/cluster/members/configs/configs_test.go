package configs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
)

func keys(t *testing.T, fill ...byte) *seal.Keys {
	t.Helper()
	var secrets [][]byte
	for _, b := range fill {
		secrets = append(secrets, bytes.Repeat([]byte{b}, seal.MinSecret))
	}
	k, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func bucket(t *testing.T, m *memkv.Memory) records.Bucket {
	t.Helper()
	b, err := m.Connect().Bucket(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func push(t *testing.T, s *ConfigStore, text string) Version {
	t.Helper()
	v, changed, err := s.Push(t.Context(), Version{Name: "mcp.json", Text: text, By: "ann@here"}, AnyBase)
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	return v
}

func wantCurrent(t *testing.T, s *ConfigStore, number int, text string) {
	t.Helper()
	if v, err := s.Current(t.Context()); err != nil || v.Number != number || v.Text != text || v.Broken {
		t.Errorf("got %+v, %v, want version %d, %q", v, err, number, text)
	}
}

func TestPushReplacesTheConfig(t *testing.T) {
	m := memkv.New()
	s := New(bucket(t, m), keys(t, 1))
	if _, err := s.Current(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("current before the first: %v", err)
	}
	if v := push(t, s, "one"); v.Number != 1 || v.At.IsZero() {
		t.Errorf("got %+v", v)
	}
	two := push(t, s, "two")
	other := New(bucket(t, m), keys(t, 1))
	if now, err := other.Current(t.Context()); err != nil || now != two || now.Number != 2 {
		t.Errorf("another replica has %+v, %v", now, err)
	}
	if v, changed, err := s.Push(t.Context(), Version{Name: "mcp.json", Text: "two", By: "bob@there"}, AnyBase); v != two || changed || err != nil {
		t.Errorf("the same again: %+v, changed %t, %v", v, changed, err)
	}
	if v, changed, err := s.Push(t.Context(), Version{Name: "mcp.yaml", Text: "two"}, AnyBase); v.Number != 3 || !changed || err != nil {
		t.Errorf("of another name: %+v, changed %t, %v", v, changed, err)
	}
}

// Of two concurrent pushes one fails and changes nothing.
func TestPushesDoNotOverwriteEachOther(t *testing.T) {
	m := memkv.New()
	b := bucket(t, m)
	s := New(b, keys(t, 1))
	push(t, s, "one")
	raced := New(overtaken{b, func() { push(t, s, "two") }}, keys(t, 1))
	if _, _, err := raced.Push(t.Context(), Version{Text: "lost"}, AnyBase); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	wantCurrent(t, s, 2, "two")
}

// overtaken is a bucket in which somebody else writes before each update.
type overtaken struct {
	records.Bucket
	first func()
}

func (o overtaken) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	o.first()
	return o.Bucket.Update(ctx, key, value, revision)
}

// Only the key opens a config, and a sealed record cannot be copied to another key.
func TestOnlyTheKeyOpensAConfig(t *testing.T) {
	b := bucket(t, memkv.New())
	old, both, next := New(b, keys(t, 1)), New(b, keys(t, 2, 1)), New(b, keys(t, 2))
	push(t, old, "secret-text")
	entry, err := b.Get(t.Context(), current)
	if err != nil || bytes.Contains(entry.Value, []byte("secret-text")) {
		t.Errorf("in the bucket is %q, %v", entry.Value, err)
	}
	if _, err := next.Current(t.Context()); !errors.Is(err, ErrKey) {
		t.Errorf("current with another key: %v", err)
	}
	if _, _, err := next.Push(t.Context(), Version{Text: "x"}, AnyBase); !errors.Is(err, ErrKey) {
		t.Errorf("push with another key: %v", err)
	}
	same, changed, err := both.Push(t.Context(), Version{Name: "mcp.json", Text: "secret-text"}, 1) // as keys are replaced
	if err != nil || changed || same.Number != 1 {
		t.Errorf("the same again: %+v, changed %t, %v", same, changed, err)
	}
	wantCurrent(t, next, 1, "secret-text")

	push(t, both, "newest")
	other, err := b.Get(t.Context(), copyOf(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), current, other.Value); err != nil {
		t.Fatal(err)
	}
	// A record is not opened under another key, so the copy is used.
	if v, err := both.Current(t.Context()); err != nil || v.Text != "newest" || !v.Broken {
		t.Errorf("the copy in the place of the current one: %+v, %v", v, err)
	}
}

func TestWatchSaysWhichIsCurrent(t *testing.T) {
	b := bucket(t, memkv.New())
	s := New(b, keys(t, 1))
	push(t, s, "one")
	first, err := b.Get(t.Context(), current)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	events, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Watch(ctx, func(v Version) { events <- v.Text }, func(err error) { events <- err.Error() })
	}()
	expect := func(want string) {
		t.Helper()
		if got := <-events; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect("one")
	push(t, s, "two")
	expect("two")
	if _, err := b.Put(t.Context(), current, first.Value); err != nil { // an older one, restored without the key
		t.Fatal(err)
	}
	expect("version 1 came after version 2, as if the cluster's state was restored from a backup: it takes effect at the next start")
	if _, err := b.Put(t.Context(), current, []byte("rubbish")); err != nil {
		t.Fatal(err)
	}
	expect("the record current: " + ErrKey.Error())
	stop()
	<-ended
}

// The copy is used if the current version is broken, and the next push repairs it. Without the
// key, Current fails.
func TestABrokenVersion(t *testing.T) {
	bucket, err := memkv.New().Connect().Bucket(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	keys := seal.Random()
	s := New(bucket, keys)
	for _, text := range []string{"one", "two"} {
		push(t, s, text)
	}
	e, err := bucket.Get(t.Context(), current)
	if err != nil {
		t.Fatal(err)
	}
	e.Value[len(e.Value)/2] ^= 1
	if _, err := bucket.Put(t.Context(), current, e.Value); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Current(t.Context()); err != nil || v.Text != "two" || v.Number != 2 || !v.Broken {
		t.Errorf("got %+v, %v", v, err)
	}
	ctx, enough := context.WithCancel(t.Context())
	var watched string
	_ = s.Watch(ctx, func(v Version) { watched += v.Text + " " }, func(err error) {
		watched += err.Error()
		enough()
	})
	if want := "two the record current: " + ErrKey.Error(); watched != want {
		t.Errorf("watched %q, want %q", watched, want)
	}
	if _, err := New(bucket, seal.Random()).Current(t.Context()); !errors.Is(err, ErrKey) {
		t.Errorf("with another key: got %v", err)
	}
	if v, changed, err := s.Push(t.Context(), Version{Name: "mcp.json", Text: "two"}, 2); err != nil || !changed || v.Number != 3 {
		t.Errorf("the same again: %+v, changed %t, %v", v, changed, err)
	}
	wantCurrent(t, s, 3, "two")
}

// A push on a base fails if another version was pushed since.
func TestPushOnABase(t *testing.T) {
	bucket, err := memkv.New().Connect().Bucket(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	s := New(bucket, seal.Random())
	for base, want := range []error{nil, nil, ErrChanged} {
		if base == 2 {
			base = 1 // another has pushed 2
		}
		if _, _, err := s.Push(t.Context(), Version{Text: fmt.Sprint(base)}, base); !errors.Is(err, want) {
			t.Errorf("on %d: got %v, want %v", base, err, want)
		}
	}
	if v, err := s.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
}
