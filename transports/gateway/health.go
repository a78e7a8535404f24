package gateway

import (
	"encoding/json"
	"net/http"
)

// health says how we are, or how a server is.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request, namespace string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		g.deny(w, denial{status: http.StatusMethodNotAllowed, text: r.Method + " means nothing here"})
		return
	}
	if namespace == "" {
		writeJSON(w, http.StatusOK, []byte(`{"status":"healthy"}`+"\n"))
		return
	}
	h, known := g.opts.Health(namespace)
	if !known {
		g.notFound(w, namespace)
		return
	}
	body, err := json.Marshal(struct {
		Namespace string `json:"namespace"`
		Status    string `json:"status"`
		PID       int    `json:"pid,omitempty"`
	}{namespace, h.Status, h.PID})
	if err != nil {
		panic(err) // not reached
	}
	writeJSON(w, http.StatusOK, append(body, '\n'))
}
