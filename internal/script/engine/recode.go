package engine

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// recode returns a text of one encoding in another one, as Buffer does.
func recode(text, from, to string) (string, error) {
	var raw []byte
	var err error
	switch from {
	case "utf8", "utf-8":
		raw = []byte(text)
	case "base64", "base64url":
		text = strings.NewReplacer("-", "+", "_", "/", "=", "", "\n", "", "\r", "", " ", "").Replace(text)
		raw, err = base64.RawStdEncoding.DecodeString(text)
	case "hex":
		raw, err = hex.DecodeString(text)
	case "latin1", "binary", "ascii":
		for _, r := range text {
			if r > 0xFF {
				return "", fmt.Errorf("%q has more than eight bits", r)
			}
			raw = append(raw, byte(r))
		}
	default:
		err = fmt.Errorf("unknown encoding %q", from)
	}
	if err != nil {
		return "", err
	}
	switch to {
	case "utf8", "utf-8":
		return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
	case "base64":
		return base64.StdEncoding.EncodeToString(raw), nil
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(raw), nil
	case "hex":
		return hex.EncodeToString(raw), nil
	case "latin1", "binary", "ascii":
		chars := make([]rune, len(raw))
		for i, b := range raw {
			chars[i] = rune(b)
		}
		return string(chars), nil
	}
	return "", fmt.Errorf("unknown encoding %q", to)
}
