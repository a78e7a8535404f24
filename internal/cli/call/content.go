package call

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// A content is one part of a tool's result.
type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"`
	MIMEType string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Resource *resource `json:"resource"`
}

// A resource is the content of a resource.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

// describe returns the text of a part, or a description of other content with the flag that prints it.
func (c content) describe(flag string) string {
	switch {
	case c.Type == "text":
		return c.Text
	case c.Type == "resource_link":
		return fmt.Sprintf("[link to %s]", c.URI)
	case c.Type == "resource" && c.Resource != nil:
		return c.Resource.describe(flag)
	}
	return describeData(c.Type, c.MIMEType, c.Data, flag)
}

// describe is content.describe for a resource.
func (r *resource) describe(flag string) string {
	if r.Text != nil {
		return *r.Text
	}
	return describeData(r.URI, r.MIMEType, r.Blob, flag)
}

// describeData describes data that are not printed. mimeType and the base64 text encoded may be
// empty. flag is the flag that prints the data.
func describeData(name, mimeType, encoded, flag string) string {
	var about []string
	if mimeType != "" {
		about = append(about, mimeType)
	}
	if n := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "="))); n > 0 {
		about = append(about, fmt.Sprintf("%d bytes", n))
	}
	if len(about) > 0 {
		name += ": " + strings.Join(about, ", ")
	}
	return "[" + name + "; " + flag + " prints it]"
}

// trimEnd removes a final line break.
func trimEnd(text string) string { return strings.TrimSuffix(text, "\n") }

// indentedJSON indents JSON without changing the bytes of its values.
func indentedJSON(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}
