package openapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/transports/upstream"
)

// maxError is the most bytes that are kept of the body of an error.
const maxError = 16 << 10

// A result is the result of a call as MCP has it.
type result struct {
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MimeType string    `json:"mimeType,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Blob     string `json:"blob"`
}

func failed(text string) *result {
	return &result{Content: []content{{Type: "text", Text: text}}, IsError: true}
}

// kept are the headers of an answer that a model may need, such as those that lead to the next page.
var kept = []string{"Link", "Location", "X-Next-Page", "X-Total-Count"}

// resultOf makes the result of a call from its answer, and closes its body.
func resultOf(web *upstream.Web, resp *http.Response) (*result, error) {
	defer resp.Body.Close()
	good := resp.StatusCode >= 200 && resp.StatusCode < 300
	if !good {
		if err := web.Refusal(resp); err != nil {
			return nil, err
		}
	}
	limit := web.MaxBytes()
	if !good {
		limit = maxError
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, web.ReadFailure(err)
	}
	if len(body) > limit && good {
		return nil, web.TooLarge()
	}
	status := fmt.Sprintf("HTTP status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	var r *result
	switch {
	case !good:
		r = failed(strings.TrimSpace(status + "\n" + errorText(body)))
	case len(body) == 0:
		r = &result{Content: []content{{Type: "text", Text: status}}}
	default:
		r = answer(resp, body)
	}
	for _, name := range kept {
		if values := resp.Header.Values(name); len(values) > 0 {
			r.Content = append(r.Content, content{Type: "text", Text: strings.ToValidUTF8(name+": "+strings.Join(values, ", "), "\uFFFD")})
		}
	}
	return r, nil
}

// errorText returns the body of an error, without what is no text.
func errorText(body []byte) string {
	if !utf8.Valid(body[:min(len(body), maxError-utf8.UTFMax)]) && strings.IndexByte(string(body), 0) >= 0 {
		return fmt.Sprintf("(%d bytes that are no text)", len(body))
	}
	if len(body) > maxError {
		return strings.ToValidUTF8(string(body[:maxError]), "") + "… (shortened)"
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// answer makes the result of an answer with a body.
func answer(resp *http.Response, body []byte) *result {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	switch {
	case isJSON(kind):
		r := &result{Content: []content{{Type: "text", Text: strings.ToValidUTF8(string(body), "\uFFFD")}}}
		text := strings.TrimPrefix(r.Content[0].Text, "\uFEFF")
		if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
			r.Structured = json.RawMessage(trimmed)
		}
		return r
	case isText(kind) || utf8.Valid(body) && kind == "application/x-www-form-urlencoded":
		text := string(body)
		if charset := strings.ToLower(params["charset"]); charset == "iso-8859-1" || charset == "windows-1252" {
			runes := make([]rune, len(body))
			for i, b := range body {
				runes[i] = rune(b)
			}
			text = string(runes)
		}
		return &result{Content: []content{{Type: "text", Text: strings.ToValidUTF8(text, "\uFFFD")}}}
	}
	data := base64.StdEncoding.EncodeToString(body)
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image", "audio":
		if kind != "image/svg+xml" {
			return &result{Content: []content{{Type: family, Data: data, MimeType: kind}}}
		}
	}
	at := *resp.Request.URL
	at.RawQuery, at.Fragment, at.User = "", "", nil // which may hold a key of the entry
	return &result{Content: []content{{Type: "resource", Resource: &resource{URI: at.String(), MimeType: kind, Blob: data}}}}
}
