package mcptest

import (
	"bufio"
	"io"
	"strings"
)

// An Event is one server-sent event that has data.
type Event struct {
	Name string // "message" by default
	ID   string
	Data string
}

// Events returns the events of a stream, and closes the channel at its end. To stop, close the stream
// and drain the channel.
func Events(r io.Reader) <-chan Event {
	out := make(chan Event)
	go func() {
		defer close(out)
		readEvents(r, func(e Event) { out <- e })
	}()
	return out
}

// readEvents calls each with every event until the stream ends. A truncated event is dropped.
func readEvents(r io.Reader, each func(Event)) {
	in := bufio.NewReader(r)
	e, data := Event{Name: "message"}, []string(nil)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case strings.TrimRight(line, "\r\n") == "":
			if e.Data = strings.Join(data, "\n"); data != nil {
				each(e)
			}
			e, data = Event{Name: "message"}, nil
		case field == "event":
			e.Name = value
		case field == "id":
			e.ID = value
		case field == "data":
			data = append(data, value)
		}
	}
}
