// Package replay has the verb replay, a server that answers as a recorded server did.
package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Verb stands in for a recorded server.
var Verb = cli.Verb{
	Use:   "replay [flags] FILE",
	Group: cli.Develop,
	Short: "Replay a recorded server",
	Long: `Serve MCP on stdin and stdout as a server did that dynmcp record has recorded. A request
is answered if one of the same method and params was: with the same bytes, but for ids
and progress tokens, and with the notifications and questions that came before the
answer. Equal requests get their answers in the recorded order, and the last one again.
A request that was not recorded gets an error that shows the nearest one. One that was
not answered is not answered.

Answers come at once, or with --speed 1 after the recorded time.`,
	Example: `  dynmcp replay files.jsonl
  dynmcp replay run.jsonl --server files --speed 10
  dynmcp call read_file path=README.md -- dynmcp replay files.jsonl`,
	Args: cli.One("no recording given", "FILE.jsonl"),
	New: func(cmd *cobra.Command) cli.Run {
		server := cmd.Flags().String("server", "", "the `server` to stand in for, where several were recorded")
		speed := cmd.Flags().Float64("speed", 0, "answer `N` times as fast as the server did; 0 is at once")
		return func(cmd *cobra.Command, args []string) error {
			if !(*speed >= 0) {
				return hint.With(fmt.Errorf("--speed %v is not possible", *speed), "1 is as fast as the server was, 0 is at once")
			}
			_, lines, err := recording.Read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, err := scriptOf(lines, *server)
			if err != nil {
				return err
			}
			log, err := cli.Logger(os.Stderr, "info")
			if err != nil {
				return err
			}
			r := &replayer{script: s, speed: *speed, out: os.Stdout, log: log, ids: map[*exchange][]byte{}, tokens: map[*exchange][]byte{}, asked: map[string]string{}}
			return r.serve(cmd.Context(), os.Stdin)
		}
	},
}

// A replayer stands in for a recorded server. Only the goroutine of serve uses it.
type replayer struct {
	script script
	speed  float64
	out    io.Writer
	log    *slog.Logger

	playing []*player
	ids     map[*exchange][]byte // ids of the host's last requests
	tokens  map[*exchange][]byte // progress tokens of the host's last requests
	streams [][]byte             // ids of open subscriptions
	asked   map[string]string    // ids of our requests, by their recorded ids
	lastID  int
}

// A player plays the events of an exchange.
type player struct {
	exchange *exchange
	id       []byte // of the host's request, nil for a notification
	token    []byte // its progress token
	next     int    // index of the next event
	began    time.Time
	waits    string // id of the request to the host that must be answered first, "" for none
}

const maxMessage = 1 << 30

// serve plays until the host has closed its stream and no event is due.
func (r *replayer) serve(ctx context.Context, in io.Reader) error {
	lines := make(chan wire.Message)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.read(ctx, in, lines) // ends with the process, because a read of stdin cannot be interrupted
	for {
		p, due := r.first()
		var timer <-chan time.Time
		switch {
		case p != nil && time.Until(due) <= 0:
			if err := r.play(p); err != nil {
				return err
			}
			continue
		case p != nil:
			timer = time.After(time.Until(due))
		case lines == nil:
			return nil
		}
		select {
		case m, ok := <-lines:
			if !ok {
				lines = nil
			} else if err := r.receive(m); err != nil {
				return err
			}
		case <-timer:
		}
	}
}

func (r *replayer) read(ctx context.Context, in io.Reader, to chan<- wire.Message) {
	defer close(to)
	reader := wire.NewReader(in, maxMessage)
	for {
		m, err := reader.Next()
		var fault *wire.Fault
		switch {
		case errors.As(err, &fault):
			r.log.Warn("the host sent a line that is no message", "err", fault.Err)
			continue
		case err != nil:
			return
		}
		line := recording.Line{Message: bytes.Clone(m.Raw)}
		for m := range line.Messages() {
			select {
			case to <- m:
			case <-ctx.Done():
				return
			}
		}
	}
}

// first returns the player whose next event is due first, with the time of the event; nil if none
// is due.
func (r *replayer) first() (first *player, due time.Time) {
	for _, p := range r.playing {
		if p.waits != "" {
			continue
		}
		at := p.began
		if r.speed > 0 {
			ms := (p.exchange.events[p.next].at - p.exchange.at) / r.speed
			at = at.Add(time.Duration(ms * float64(time.Millisecond)))
		}
		if first == nil || at.Before(due) {
			first, due = p, at
		}
	}
	return first, due
}

func (r *replayer) receive(m wire.Message) error {
	switch {
	case m.Method == "notifications/cancelled":
		id := wire.Get(m.Params, "requestId")
		r.end(func(p *player) bool { return p.id != nil && bytes.Equal(p.id, id) })
		r.close(id)
		return nil
	case m.Method == "":
		r.resume(string(m.ID))
		return nil
	}
	x, otherEra := r.script.find(m), r.script.otherEra(m)
	switch {
	case x != nil && (!otherEra || m.Method == methodDiscover):
		r.begin(x, m)
		return nil
	case m.ID == nil:
		return nil
	case otherEra:
		return r.send(wire.Failure(m.ID, r.script.refusal()))
	case m.Method == "ping":
		return r.send(wire.Result(m.ID, []byte(`{}`)))
	}
	r.log.Warn("not recorded", "method", m.Method, "params", string(m.Params))
	return r.send(wire.Failure(m.ID, r.script.missing(m)))
}

// begin starts a player of an exchange for the host's message m.
func (r *replayer) begin(x *exchange, m wire.Message) {
	if !x.over && m.Method != methodListen {
		r.log.Warn("the recording has no answer to this", "method", m.Method, "params", string(m.Params))
	}
	x.played = true
	token := wire.Get(m.Params, "_meta", "progressToken")
	r.ids[x], r.tokens[x] = m.ID, token
	if m.Method == methodListen {
		r.streams = append(r.streams, m.ID)
	}
	if len(x.events) > 0 {
		r.playing = append(r.playing, &player{exchange: x, id: m.ID, token: token, began: time.Now()})
	}
}

// resume continues the player that waits for the answer to our request id, and removes finished
// players.
func (r *replayer) resume(id string) {
	for _, p := range r.playing {
		if p.waits == id {
			p.waits = ""
		}
	}
	r.end(func(p *player) bool { return p.waits == "" && p.next == len(p.exchange.events) })
}

func (r *replayer) end(of func(*player) bool) { r.playing = slices.DeleteFunc(r.playing, of) }

// play sends the next message of a player, with the ids of the host's requests.
func (r *replayer) play(p *player) error {
	e := p.exchange.events[p.next]
	p.next++
	m := e.message
	if m.IsRequest() {
		r.lastID++
		p.waits = fmt.Sprintf(`"replay-%d"`, r.lastID)
		r.asked[string(m.ID)] = p.waits
		return r.send([][]byte{wire.Set(m.Raw, "id", []byte(p.waits))})
	}
	defer r.resume("") // the player may have finished
	id, token := p.id, p.token
	if e.about != p.exchange { // of an equal request, each player has its own
		id, token = r.ids[e.about], r.tokens[e.about]
	}
	switch {
	case m.Method == "" && e.about.method == methodListen:
		id := r.stream(e.about)
		r.close(id)
		m.Raw = wire.Set(m.Raw, "id", id)
		return r.sendAs(m, id, "result", "_meta", transports.MetaSubscriptionID)
	case m.Method == "":
		return r.send([][]byte{wire.Set(m.Raw, "id", id)})
	case m.Method == "notifications/progress" && e.about != nil:
		return r.sendAs(m, token, "params", "progressToken")
	case m.Method == "notifications/cancelled":
		id := r.asked[string(wire.Get(m.Params, "requestId"))]
		r.resume(id)
		return r.sendAs(m, []byte(id), "params", "requestId")
	case e.about != nil:
		return r.sendAs(m, r.stream(e.about), "params", "_meta", transports.MetaSubscriptionID)
	}
	return r.send([][]byte{m.Raw})
}

// stream returns the id of the host's subscription for a recorded one: the newest if the host has
// not made that request, nil if none is open.
func (r *replayer) stream(x *exchange) []byte {
	for _, id := range slices.Backward(r.streams) {
		if r.ids[x] == nil || bytes.Equal(r.ids[x], id) {
			return id
		}
	}
	return nil
}

// close removes a subscription that has ended.
func (r *replayer) close(id []byte) {
	r.streams = slices.DeleteFunc(r.streams, func(one []byte) bool { return bytes.Equal(one, id) })
}

// sendAs sends a message with value at path. It sends nothing if value is empty, because the host
// expects no such message.
func (r *replayer) sendAs(m wire.Message, value []byte, path ...string) error {
	if len(value) == 0 {
		return nil
	}
	text := m.Raw
	if at := wire.Find(text, path...); at.Len > 0 {
		text = wire.Replace(text, wire.Edit{Span: at, With: value})
	}
	return r.send([][]byte{text})
}

func (r *replayer) send(message [][]byte) error {
	_, err := r.out.Write(append(bytes.Join(message, nil), '\n'))
	return err
}
