package engine

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// recode returns a text of one encoding in another one, as Buffer does: utf8, base64 or latin1.
func recode(text, from, to string) (string, error) {
	for _, encoding := range []string{from, to} {
		if encoding != "utf8" && encoding != "utf-8" && encoding != "base64" && encoding != "latin1" {
			return "", fmt.Errorf("the encoding %q is not available: there are utf8, base64 and latin1", encoding)
		}
	}
	raw := []byte(text)
	switch from {
	case "base64":
		var err error
		if raw, err = base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "=", "", "\n", "", "\r", "", " ", "").Replace(text)); err != nil {
			return "", err
		}
	case "latin1":
		raw = raw[:0]
		for _, r := range text {
			raw = append(raw, byte(r))
		}
	}
	return encode(raw, to), nil
}

func encode(raw []byte, encoding string) string {
	switch encoding {
	case "base64":
		return base64.StdEncoding.EncodeToString(raw)
	case "latin1":
		chars := make([]rune, len(raw))
		for i, b := range raw {
			chars[i] = rune(b)
		}
		return string(chars)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}
