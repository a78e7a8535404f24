package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// health answers with the health of the gateway, or of a server if namespace is not empty.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request, namespace string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		deny(w, denial{status: http.StatusMethodNotAllowed, text: "the method " + r.Method + " is not allowed here"})
		return
	}
	if namespace == "" && !g.forwarder.several {
		writeJSON(w, http.StatusOK, []byte(`{"status":"healthy"}`+"\n"))
		return
	}
	if namespace == "" {
		status, state := http.StatusOK, "ok"
		select {
		case <-g.leaving:
			status, state = http.StatusServiceUnavailable, "draining"
		default:
			if g.forwarder.Degraded() {
				state = "degraded"
			}
		}
		writeJSON(w, status, fmt.Appendf(nil, "{\"status\":%q,\"replica\":%s}\n", state, wire.Quote(g.forwarder.Name)))
		return
	}
	h, known := g.opts.Health(g.opts.Named(namespace))
	if !known {
		deny(w, g.unknown(namespace))
		return
	}
	body, _ := json.Marshal(struct { // texts and numbers always marshal
		Namespace string `json:"namespace"`
		Status    string `json:"status"`
		PID       int    `json:"pid,omitempty"`
	}{namespace, h.Status, h.PID})
	writeJSON(w, http.StatusOK, append(body, '\n'))
}
