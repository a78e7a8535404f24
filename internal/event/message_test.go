package event

import (
	"errors"
	"slices"
	"testing"
)

// seen collects the texts of messages.
type seen struct {
	texts []string
	lost  int64
}

func (s *seen) Read(all []Message, lost int64) error {
	for _, m := range all {
		s.texts = append(s.texts, m.Direction()+" "+m.Server+" "+string(m.Text))
	}
	s.lost += lost
	return nil
}

// A tap without followers costs no allocation. A follower reads every message until it is closed.
func TestTap(t *testing.T) {
	var none *Tap
	if none.Watched() || none.Upstream("a") != (Connection{Server: "a"}) {
		t.Error("no tap is watched, or counts")
	}
	messages, host := &Tap{}, Connection{Session: "s", Server: "a"}
	show := func(piece string) {
		if messages.Watched() {
			messages.Show(host, true, []byte(piece), []byte("b"))
			messages.Show(Connection{Server: "u"}, false, []byte(piece))
		}
	}
	if n := testing.AllocsPerRun(100, func() { show("") }); n != 0 {
		t.Errorf("%v allocations while nobody follows", n)
	}
	var all, hosts seen
	first := messages.Follow(&all, Limits{Text: 8, Waiting: 100})
	second := messages.Follow(&hosts, Limits{Text: 2, Waiting: 100, Hosts: true})
	show("aa")
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	show("cc")
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	show("dd")
	if !slices.Equal(all.texts, []string{"in a aab", "out u aa"}) || !slices.Equal(hosts.texts, []string{"in a aa", "in a cc"}) || messages.Watched() {
		t.Errorf("read %q and %q", all.texts, hosts.texts)
	}
}

// busy reads nothing until it may, and then fails if it is told to.
type busy struct {
	seen
	reads, may chan struct{}
	fail       error
}

func (b *busy) Read(all []Message, lost int64) error {
	b.reads <- struct{}{}
	<-b.may
	return errors.Join(b.seen.Read(all, lost), b.fail)
}

// A slow reader does not delay messages: those without room are counted. After an error it reads
// no more.
func TestSlowReader(t *testing.T) {
	const sent = 30
	for _, fail := range []error{nil, errors.New("full")} {
		messages, to := &Tap{}, &busy{reads: make(chan struct{}, sent), may: make(chan struct{}), fail: fail}
		f := messages.Follow(to, Limits{Text: 10, Waiting: 100})
		for i := range sent {
			messages.Show(Connection{}, true, make([]byte, 50))
			if i == 0 {
				<-to.reads
			}
		}
		f.mu.Lock()
		if len(f.waiting) != 10 || f.lost != sent-11 {
			t.Errorf("%d messages wait, %d are lost", len(f.waiting), f.lost)
		}
		f.mu.Unlock()
		close(to.may)
		if fail == nil {
			<-to.reads // what waited, so that Close reads once more
		}
		if fail != nil {
			<-f.Done()
		}
		err := f.Close()
		if !errors.Is(err, fail) || messages.Watched() {
			t.Errorf("got %v, want %v; followed: %t", err, fail, messages.Watched())
		}
		if fail == nil && (len(to.texts) != 11 || to.lost != sent-11) {
			t.Errorf("%d messages are read, %d are lost, want 11 of %d", len(to.texts), to.lost, sent)
		}
	}
}
