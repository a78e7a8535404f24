// Package runs finds a user's runs of dynmcp, and controls their servers. Each run serves a [Control] on
// its private HTTP server.
package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/transports"
)

// A Run describes a run.
type Run struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Kind    string    `json:"kind"`             // stdio or serve
	Config  string    `json:"config,omitempty"` // path of the config file; "" for a command after --
	Profile string    `json:"profile,omitempty"`
	EnvFile string    `json:"env_file,omitempty"`
	Listens []string  `json:"listens,omitempty"` // HOST:PORT
	Since   time.Time `json:"since"`
	Hosts   []string  `json:"hosts"` // the names that hosts report, at most maxHosts
	More    int       `json:"more_hosts,omitempty"`
	Servers []Server  `json:"servers"`

	Questions []aggregator.Question `json:"questions"` // calls that wait for the answer of a person
}

// A Server describes a server of a run.
type Server struct {
	event.Server

	Era    string `json:"era,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// A Control gives the user's other programs access to a run.
type Control struct {
	Aggregator *aggregator.Aggregator
	Messages   *event.Tap
	About      Run                                             // the parts that do not change
	Use        func(ctx context.Context, profile string) error // nil without profiles
	End        context.CancelFunc                              // ends the run as a signal does; nil if nothing can
}

// Handler answers GET /run, GET /messages, and POST /servers/NAME/ACT (see acts), /profile/NAME,
// /questions/ID/ANSWER (see answers) and /end.
func (c Control) Handler() http.Handler {
	c.About.PID, c.About.Version, c.About.Since = os.Getpid(), cli.Version, time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /run", func(w http.ResponseWriter, _ *http.Request) {
		now, st := c.About, c.Aggregator.Status()
		now.Hosts, now.More = hostsOf(st.Sessions())
		now.Servers, now.Profile, now.Questions = serversOf(st), st.Profile(), questionsOf(st)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(now) // fails only if the client is gone
	})
	mux.HandleFunc("GET /messages", c.messages)
	mux.HandleFunc("POST /servers/{name}/{act}", func(w http.ResponseWriter, r *http.Request) {
		act, name := acts[r.PathValue("act")], r.PathValue("name")
		if act == nil {
			http.NotFound(w, r)
			return
		}
		if err := act(c.Aggregator.Status(), r.Context(), name); err != nil {
			refuse(w, err)
		}
	})
	mux.HandleFunc("POST /profile/{name}", func(w http.ResponseWriter, r *http.Request) {
		err := errors.New("it runs one command and has no profiles")
		if c.Use != nil {
			err = c.Use(r.Context(), r.PathValue("name"))
		}
		if err != nil {
			refuse(w, err)
		}
	})
	mux.HandleFunc("POST /questions/{id}/{answer}", func(w http.ResponseWriter, r *http.Request) {
		said, ok := answers[r.PathValue("answer")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if err := c.Aggregator.Status().Answer(r.PathValue("id"), said.yes, said.session); err != nil {
			refuse(w, err)
		}
	})
	mux.HandleFunc("POST /end", func(w http.ResponseWriter, r *http.Request) {
		if c.End == nil {
			refuse(w, errors.New("it ends with its host"))
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the run may be gone before the answer otherwise
		context.AfterFunc(r.Context(), c.End)
	})
	return mux
}

func (c Control) messages(w http.ResponseWriter, r *http.Request) {
	began := time.Now().UTC()
	out := flushWriter{w, http.NewResponseController(w)}
	if json.NewEncoder(out).Encode(recording.Header{Format: recording.Format, Dynmcp: c.About.Version, Began: began}) != nil {
		return
	}
	recorder := recording.Start(c.Messages, out, began, cli.Secrets.String)
	select {
	case <-r.Context().Done():
	case <-recorder.Done():
	}
	_ = recorder.Close() // the client is gone
}

// refuse answers a failed request with its error and hint.
func refuse(w http.ResponseWriter, err error) {
	text := err.Error()
	failure, failed := errors.AsType[*transports.Failure](err)
	var hinted interface{ Hint() string } // an unknown profile
	switch {
	case failed && failure.Hint != "":
		text += "; " + failure.Hint
	case errors.As(err, &hinted):
		text += "; " + hinted.Hint()
	}
	http.Error(w, cli.Secrets.String(text), http.StatusConflict)
}

// writeTimeout is the timeout for each write to a client that reads messages.
const writeTimeout = 10 * time.Second

// A flushWriter flushes each write.
type flushWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (w flushWriter) Write(text []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // sockets support deadlines
	n, err := w.ResponseWriter.Write(text)
	return n, cmp.Or(err, w.control.Flush())
}

func questionsOf(st aggregator.Status) []aggregator.Question {
	all := st.Questions()
	for i := range all {
		all[i].Arguments = cli.Secrets.String(all[i].Arguments)
	}
	return all
}

// answers are the possible answers to a question.
var answers = map[string]struct{ yes, session bool }{"once": {yes: true}, "session": {yes: true, session: true}, "no": {}}

// acts are the actions on a server of a run.
var acts = map[string]func(aggregator.Status, context.Context, string) error{
	"start": aggregator.Status.Start,
	"stop":  func(st aggregator.Status, _ context.Context, server string) error { return st.Stop(server) },
	"restart": func(st aggregator.Status, ctx context.Context, server string) error {
		if err := st.Stop(server); err != nil {
			return err
		}
		return st.Start(ctx, server)
	},
}

// maxHosts limits the hosts that a run names.
const maxHosts = 20

// hostsOf returns the names of hosts, and the number of further hosts.
func hostsOf(sessions []event.Session) (hosts []string, more int) {
	hosts = []string{}
	for _, s := range sessions {
		switch {
		case s.Replica:
		case len(hosts) == maxHosts:
			more++
		default:
			hosts = append(hosts, cli.Secrets.String(strings.TrimSpace(s.Host+" "+s.User)))
		}
	}
	return hosts, more
}

func serversOf(st aggregator.Status) []Server {
	servers := []Server{}
	for _, u := range st.Upstreams() {
		s := Server{Server: u.Redact(cli.Secrets.String), Stderr: cli.Secrets.String(st.Stderr(u.Name))}
		switch {
		case u.Protocol >= transports.StatelessVersion:
			s.Era = "stateless"
		case u.Protocol != "":
			s.Era = "handshake"
		}
		servers = append(servers, s)
	}
	return servers
}
