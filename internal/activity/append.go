package activity

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// append appends a line as json.Marshal writes it. Reflection would take most of a writer's time.
func (l *Line) append(to []byte) []byte {
	m := members(append(to, `{"time":"`...))
	m = append(l.Time.AppendFormat(m, time.RFC3339Nano), '"')
	m.text("run", l.Run)
	m.text("session", l.Session)
	m.text("host", l.Host)
	m.text("principal", l.Principal)
	m.text("surface", l.Surface)
	m.text("server", l.Server)
	m.text("tool", l.Tool)
	m.text("method", l.Method)
	m.text("outcome", l.Outcome)
	m.text("kind", l.Kind)
	m.count("rule", l.Rule)
	m.number("ms", l.MS)
	if l.StartMS != 0 {
		m.number("start_ms", l.StartMS)
	}
	m.number("bytes_in", float64(l.BytesIn))
	m.number("bytes_out", float64(l.BytesOut))
	m.number("tokens_in", float64(l.TokensIn))
	m.number("tokens_out", float64(l.TokensOut))
	m.text("digest", l.Digest)
	m.count("queries", l.Queries)
	m.count("shown", l.Shown)
	m.raw("query", l.Query)
	m.raw("arguments", l.Arguments)
	m.raw("result", l.Result)
	m.count("dropped", int(l.Dropped))
	return append(m, '}')
}

// members are those of a JSON object, behind its first.
type members []byte

func (m *members) key(key string) { *m = append(append(append(*m, `,"`...), key...), `":`...) }

// text adds a string that is not empty.
func (m *members) text(key, value string) {
	if value != "" {
		m.key(key)
		*m = wire.AppendQuote(*m, value)
	}
}

func (m *members) number(key string, value float64) {
	m.key(key)
	*m = strconv.AppendFloat(*m, value, 'f', -1, 64)
}

// count adds a number that is not 0.
func (m *members) count(key string, value int) {
	if value != 0 {
		m.number(key, float64(value))
	}
}

// raw adds JSON on one line.
func (m *members) raw(key string, value json.RawMessage) {
	if value != nil {
		m.key(key)
		b := bytes.NewBuffer(*m)
		_ = json.Compact(b, value) // it is valid
		*m = b.Bytes()
	}
}
