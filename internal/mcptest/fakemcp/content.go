package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// readResource answers any URI that is listed or matches the template.
func (c *call) readResource() (json.RawMessage, error) {
	uri, err := c.uri()
	if err != nil {
		return nil, err
	}
	o := c.peer.fake.offer
	switch {
	case !o.has("resources", uri) && !o.matches(uri):
		return nil, &rpcError{
			Code: json.RawMessage("-32002"), Message: "Resource not found",
			Data: fmt.Appendf(nil, `{"uri":%s,%s}`, quote(uri), grease),
		}
	case strings.HasSuffix(uri, "blob"):
		return fmt.Appendf(nil, `{%s,"contents":[{"blob":"AP8Q","mimeType":"application/octet-stream","uri":%s,%s}]}`, grease, quote(uri), grease), nil
	}
	return fmt.Appendf(nil, `{%s,"contents":[{"text":%s,"mimeType":"text/plain","uri":%s,%s}]}`,
		grease, quote("contents of "+uri), quote(uri), grease), nil
}

// watch starts or ends a subscription.
func (c *call) watch(on bool) (json.RawMessage, error) {
	uri, err := c.uri()
	if err != nil {
		return nil, err
	}
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.peer.watched[uri] = on
	return json.RawMessage(`{` + grease + `}`), nil
}

func (c *call) uri() (string, error) {
	var params struct{ URI string }
	return params.URI, decodeInto(c.Params, &params, &params.URI)
}

// decodeInto decodes params. It is an error if the required field is empty.
func decodeInto(raw json.RawMessage, params any, required *string) error {
	if err := decode(raw, params); err != nil {
		return err
	}
	if *required == "" {
		return failure(-32602, "Invalid params: %s", raw)
	}
	return nil
}

// nameOf returns the member name of arguments, which is required.
func nameOf(args json.RawMessage) (string, error) {
	var a struct{ Name string }
	err := decodeInto(args, &a, &a.Name)
	return a.Name, err
}

func (c *call) getPrompt() (json.RawMessage, error) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := decodeInto(c.Params, &params, &params.Name); err != nil {
		return nil, err
	}
	if !c.peer.fake.offer.has("prompts", params.Name) {
		return nil, failure(-32602, "Unknown prompt: %s", params.Name)
	}
	text := params.Name + " " + orAbsent(params.Arguments)
	return fmt.Appendf(nil, `{%s,"messages":[{"content":%s,"role":"user",%s}],"description":"Greet someone."}`,
		grease, textContent(text), grease), nil
}

// complete returns the argument's value and the reference, so that a test can check that its request
// arrived unchanged.
func (c *call) complete() (json.RawMessage, error) {
	var params struct {
		Ref      json.RawMessage `json:"ref"`
		Argument struct {
			Value string `json:"value"`
		} `json:"argument"`
	}
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{%s,"completion":{"hasMore":false,"values":[%s,%s],"total":2}}`,
		grease, quote(params.Argument.Value+"…"), quote(orAbsent(params.Ref))), nil
}

// orAbsent returns the bytes of a member, "absent" for a missing one.
func orAbsent(raw json.RawMessage) string {
	if raw == nil {
		return "absent"
	}
	return string(raw)
}
