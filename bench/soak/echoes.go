package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// echoes are ways for a remote server to fail a request and repeat its content. None is
// a valid MCP answer, which dynmcp would pass unchanged.
var echoes = map[string]func(w http.ResponseWriter, sent string){
	"page":   func(w http.ResponseWriter, sent string) { fmt.Fprint(w, "<html>", sent) },
	"status": refuse(http.StatusInternalServerError, func(s string) string { return s }),
	"login":  refuse(http.StatusUnauthorized, func(s string) string { return s }),
	"scope":  refuse(http.StatusForbidden, func(s string) string { return s }),
	"gone":   refuse(http.StatusNotFound, func(s string) string { return s }),
	"later":  refuse(http.StatusTooManyRequests, func(s string) string { return s }),
	"base64": refuse(http.StatusBadGateway, func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"url":    refuse(http.StatusBadGateway, url.QueryEscape),
	"json":   refuse(http.StatusBadGateway, func(s string) string { return fmt.Sprintf("%q", s) }),
	"broken": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{", sent)
	},
	"event": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: {%s\n\n", strings.ReplaceAll(sent, "\n", " "))
	},
	"redirect": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Location", "http://127.0.0.2:1/?sent="+url.QueryEscape(sent))
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
}

func refuse(status int, form func(string) string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, sent string) { http.Error(w, form(sent), status) }
}

// repeat answers a request with the header that X-Show names, or else with the whole
// request. It does this for all requests to /early/NAME, and for calls to /late/NAME.
func repeat(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true) // an incomplete request gets no answer
	sent := string(dump)
	if header := r.Header.Get("X-Show"); header != "" {
		sent = r.Header.Get(header)
	}
	_, body, _ := strings.Cut(string(dump), "\r\n\r\n")
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal([]byte(body), &m) // a GET has none
	when, name, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if when == "late" && m.Method != "tools/call" {
		hello(w, m.ID, m.Method)
		return
	}
	if echo := echoes[strings.Trim(name, "/")]; echo != nil {
		echo(w, sent)
	}
}

// hello answers requests before a call, and calls for servers without faults.
func hello(w http.ResponseWriter, id json.RawMessage, method string) {
	result := ""
	switch method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echoes","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"ran"}]}`
	}
	switch {
	case id == nil && method == "":
		w.WriteHeader(http.StatusMethodNotAllowed)
	case id == nil:
		w.WriteHeader(http.StatusAccepted)
	case result == "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, id)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
	}
}
