package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// isMeta reports whether a path belongs to the API of the tree of tools.
func isMeta(path string) bool {
	return path == "/meta_tree" || path == "/meta_desc" || path == "/meta_call"
}

// meta calls a tool of the tree. The body of the request is the arguments of the tool, as JSON.
func (g *Gateway) meta(w http.ResponseWriter, r *http.Request, principal, tool string) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST, OPTIONS")
		denyMeta(w, http.StatusMethodNotAllowed, wire.CodeInvalidRequest, "the method "+r.Method+" is not allowed here")
		return
	}
	body, err := g.readBody(w, r)
	if err != nil {
		d := g.unreadable(w, r, err)
		metaError(w, d.status, d.error(w.Header()))
		return
	}
	if body = wire.JoinLines(bytes.TrimSpace(body)); !json.Valid(body) || !wire.IsObject(body) {
		denyMeta(w, http.StatusBadRequest, wire.CodeParse, `the body must be an object, such as {"path": "/"}`)
		return
	}
	if !g.begin() {
		w.Header().Set("Connection", "close")
		metaError(w, http.StatusServiceUnavailable, transports.ShuttingDown(transports.NotSent))
		return
	}
	defer g.running.add(-1)
	e, done := g.openExchange(r, principal, true, func(e Edge) (*host.Session, func(context.Context)) { return g.opts.OpenTree(e, principal) })
	defer done()
	e.host.Receive(parsed(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%q:%q,%q:{}}}}`,
		tool, body, transports.MetaVersion, transports.StatelessVersion, transports.MetaCapabilities)), e.standalone)
	if answer, ok := e.standalone.await(r.Context()); ok {
		g.metaAnswer(w, principal, tool, body, answer)
	}
}

// metaAnswer writes the answer of a tool of the tree to arguments of a principal, in the form of the API.
func (g *Gateway) metaAnswer(w http.ResponseWriter, principal, tool string, arguments, answer []byte) {
	if failure := wire.Get(answer, "error"); failure != nil {
		e := wire.ParseError(failure)
		switch e.Code {
		case wire.CodeInvalidParams:
			metaError(w, http.StatusUnprocessableEntity, e)
		case transports.CodeTimeout:
			metaError(w, http.StatusGatewayTimeout, e)
		default:
			metaError(w, http.StatusBadGateway, e)
		}
		return
	}
	result := wire.Get(answer, "result")
	result = wire.Delete(result, "resultType") // of the protocol, not of the API
	var first []byte
	for item := range wire.Elements(wire.Get(result, "content")) {
		first = item
		break
	}
	text, _ := wire.Text(wire.Get(first, "text"))
	failed := string(wire.Get(result, "isError")) == "true"
	path, _ := wire.Text(wire.Get(arguments, "path"))
	kind := g.opts.TreeKind(principal, path)
	switch {
	case failed && kind == "":
		denyMeta(w, http.StatusNotFound, wire.CodeInvalidParams, text)
	case failed && (tool != "meta_call" || kind != "tool"):
		denyMeta(w, http.StatusBadRequest, wire.CodeInvalidParams, text)
	case tool == "meta_call":
		writeJSON(w, http.StatusOK, result)
	case json.Valid([]byte(text)):
		writeJSON(w, http.StatusOK, []byte(text))
	default:
		writeJSON(w, http.StatusOK, append(append([]byte(`{"text":`), wire.Quote(text)...), '}'))
	}
}

// denyMeta denies a request of which nothing was sent.
func denyMeta(w http.ResponseWriter, status int, code int64, text string) {
	metaError(w, status, transports.OutcomeError(code, text, transports.NotSent))
}

// metaError answers with an error in the form of the API.
func metaError(w http.ResponseWriter, status int, e *wire.Error) {
	writeJSON(w, status, append(append([]byte(`{"error":`), e.JSON()...), '}'))
}
