package configs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/kv/memkv"
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

func bucket(t *testing.T, m *memkv.Memory) kv.Bucket {
	t.Helper()
	b, err := m.Connect().Bucket(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func push(t *testing.T, s *Store, text string) Version {
	t.Helper()
	v, err := s.Push(t.Context(), Version{Name: "mcp.json", Text: text, By: "ann@here", Comment: "of " + text}, AnyBase)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// summary is what a history says of its versions.
func summary(all []Version) (lines []string) {
	for _, v := range all {
		lines = append(lines, fmt.Sprintf("%d %s %d", v.Number, v.Text, v.RolledBack))
	}
	return lines
}

func history(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return summary(all)
}

func TestVersionsAreKeptAndGoneBackTo(t *testing.T) {
	m := memkv.New()
	s := New(bucket(t, m), keys(t, 1))
	for what, err := range map[string]error{
		"current": second(s.Current(t.Context())),
		"history": second(s.History(t.Context())),
	} {
		if !errors.Is(err, ErrNone) {
			t.Errorf("%s before the first: %v", what, err)
		}
	}
	if err := second(s.Version(t.Context(), 1)); !errors.Is(err, ErrVersion) {
		t.Errorf("version 1 before the first: %v", err)
	}
	if v := push(t, s, "one"); v.Number != 1 || v.At.IsZero() {
		t.Errorf("got %+v", v)
	}
	push(t, s, "two")
	back, err := s.Rollback(t.Context(), 1, "bob@there", "two was wrong")
	if err != nil || back.Number != 3 || back.Text != "one" || back.By != "bob@there" {
		t.Errorf("got %+v, %v", back, err)
	}
	other := New(bucket(t, m), keys(t, 1))
	if now, err := other.Current(t.Context()); err != nil || now != back {
		t.Errorf("another replica has %+v, %v", now, err)
	}
	if got, want := history(t, other), []string{"3 one 1", "2 two 0", "1 one 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, number := range []int{0, 4} {
		if err := second(s.Rollback(t.Context(), number, "", "")); !errors.Is(err, ErrVersion) {
			t.Errorf("rolled back to %d: %v", number, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Of two that push at once one is told so, and nothing of it is there.
func TestPushesDoNotOverwriteEachOther(t *testing.T) {
	m := memkv.New()
	b := bucket(t, m)
	s := New(b, keys(t, 1))
	push(t, s, "one")
	raced := New(overtaken{b, func() { push(t, s, "two") }}, keys(t, 1))
	if _, err := raced.Push(t.Context(), Version{Text: "lost"}, AnyBase); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if got, want := history(t, s), []string{"2 two 0", "1 one 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// overtaken is a bucket in which somebody else is faster with each update.
type overtaken struct {
	kv.Bucket
	first func()
}

func (o overtaken) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	o.first()
	return o.Bucket.Update(ctx, key, value, revision)
}

// Who was killed right after the version became current left no copy for the history.
func TestHistoryIsWholeAfterAPushThatWasKilled(t *testing.T) {
	m := memkv.New()
	b := bucket(t, m)
	s := New(b, keys(t, 1))
	push(t, s, "one")
	if err := b.Delete(t.Context(), copyOf(1), 0); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Version(t.Context(), 1); err != nil || v.Text != "one" {
		t.Errorf("got %+v, %v", v, err)
	}
	push(t, s, "two")
	if got, want := history(t, s), []string{"2 two 0", "1 one 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyTheLastVersionsAreKept(t *testing.T) {
	s := New(bucket(t, memkv.New()), keys(t, 1))
	for i := range Kept + 3 {
		push(t, s, fmt.Sprint(i+1))
	}
	got := history(t, s)
	if len(got) != Kept || got[0] != fmt.Sprintf("%d %[1]d 0", Kept+3) || got[Kept-1] != "4 4 0" {
		t.Errorf("got %d versions, %q", len(got), got)
	}
}

// What a key seals others cannot read, nor put in the place of anything else.
func TestOnlyTheKeyOpensAConfig(t *testing.T) {
	b := bucket(t, memkv.New())
	old, both, next := New(b, keys(t, 1)), New(b, keys(t, 2, 1)), New(b, keys(t, 2))
	push(t, old, "secret-text")
	entry, err := b.Get(t.Context(), current)
	if err != nil || bytes.Contains(entry.Value, []byte("secret-text")) {
		t.Errorf("in the bucket is %q, %v", entry.Value, err)
	}
	for what, err := range map[string]error{
		"current": second(next.Current(t.Context())),
		"push":    second(next.Push(t.Context(), Version{Text: "x"}, AnyBase)),
	} {
		if !errors.Is(err, ErrKey) {
			t.Errorf("%s with another key: %v", what, err)
		}
	}
	if _, err := both.Rollback(t.Context(), 1, "", ""); err != nil { // as keys are replaced
		t.Fatal(err)
	}
	if v, err := next.Current(t.Context()); err != nil || v.Text != "secret-text" {
		t.Errorf("got %+v, %v", v, err)
	}
	if all, err := next.History(t.Context()); err != nil || len(all) != 2 || all[1].Number != 1 || all[1].Text != "" || all[1].Comment != ErrKey.Error() {
		t.Errorf("got %+v, %v", all, err)
	}

	push(t, both, "newest")
	for _, from := range []string{copyOf(2), copyOf(3)} {
		other, err := b.Get(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), current, other.Value); err != nil {
			t.Fatal(err)
		}
		// It is not opened: the newest one that was kept is gone on from.
		if v, err := both.Current(t.Context()); err != nil || v.Text != "newest" || !v.Broken {
			t.Errorf("%s in the place of the current one: %+v, %v", from, v, err)
		}
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
	told, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Watch(ctx, func(v Version) { told <- v.Text }, func(err error) { told <- err.Error() })
	}()
	expect := func(want string) {
		t.Helper()
		if got := <-told; got != want {
			t.Errorf("was told %q, want %q", got, want)
		}
	}
	expect("one")
	push(t, s, "two")
	expect("two")
	if _, err := b.Put(t.Context(), current, first.Value); err != nil { // an older one, brought back by who has no key
		t.Fatal(err)
	}
	expect("version 1 came after version 2, as if the cluster's state was of another day: it is taken at the next start")
	if _, err := b.Put(t.Context(), current, []byte("rubbish")); err != nil {
		t.Fatal(err)
	}
	expect("the record current: " + ErrKey.Error())
	stop()
	<-ended
}

// A broken current version is gone on from with its copy, and the next push mends it. Who
// lacks the key gets no older one in its place.
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
	if v, err := s.Push(t.Context(), Version{Text: "three"}, 2); err != nil || v.Number != 3 {
		t.Errorf("got %+v, %v", v, err)
	}
	if v, err := s.Current(t.Context()); err != nil || v.Text != "three" || v.Broken {
		t.Errorf("got %+v, %v", v, err)
	}
}

// Who says which version he has changed does not undo what another has pushed since.
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
		if _, err := s.Push(t.Context(), Version{Text: fmt.Sprint(base)}, base); !errors.Is(err, want) {
			t.Errorf("on %d: got %v, want %v", base, err, want)
		}
	}
	if v, err := s.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
}
