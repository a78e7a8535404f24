package jwt

import (
	"encoding/base64"
	"testing"
)

func TestDecode(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString
	header, claims := part([]byte(`{"typ":"at+jwt"}`)), part([]byte(`{"sub":"ann"}`))
	type values struct {
		Type    string `json:"typ"`
		Subject string `json:"sub"`
	}
	for token, fails := range map[string]bool{
		header + "." + claims + ".s":   false,
		header + "." + claims + ".":    false,
		header + "." + claims:          true,
		header + "." + claims + ".s.s": true,
		"":                             true,
		header + ".?.s":                true,
		header + "." + part([]byte(`"ann"`)) + ".s":        true,
		part([]byte(`{"typ":1}`)) + "." + claims + ".s":    true,
		header + "." + claims + "=." + ".s":                true,
		header + "." + part([]byte(`{"sub":"ann"`)) + ".s": true,
	} {
		var h, c values
		err := Decode(token, &h, &c)
		if (err != nil) != fails {
			t.Errorf("%q: %v", token, err)
		} else if !fails && (h != values{Type: "at+jwt"} || c != values{Subject: "ann"}) {
			t.Errorf("%q: %v, %v", token, h, c)
		}
	}
	var c values
	if err := Decode("?."+claims+".s", nil, &c); err != nil || c.Subject != "ann" {
		t.Errorf("claims alone: %v, %v", c, err)
	}
}
