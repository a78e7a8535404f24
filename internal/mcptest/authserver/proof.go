package authserver

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// proveLocked checks the DPoP proof of a request. It returns the thumbprint of the proven key, ""
// without a proof. If ok is false, it has answered the request with an error.
func (s *Server) proveLocked(w http.ResponseWriter, r *http.Request, token string) (key string, ok bool) {
	text := r.Header.Get("DPoP")
	if text == "" || s.opts.Bind == "" {
		return "", true
	}
	key, id, nonce := proven(r, text, s.base, token)
	wrong := ""
	switch {
	case key == "" || s.proofs[id]:
		wrong = "invalid_dpop_proof"
	case s.opts.Nonces && nonce != s.nonce:
		wrong = "use_dpop_nonce"
	}
	s.proofs[id] = true
	if s.opts.Nonces {
		s.nonce = rand.Text()
		w.Header().Set("DPoP-Nonce", s.nonce)
	}
	switch {
	case wrong == "":
		return key, true
	case token == "":
		refuse(w, http.StatusBadRequest, wrong)
	default:
		w.Header().Set("WWW-Authenticate", `DPoP error="`+wrong+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	s.state.Counts[wrong]++
	return "", false
}

// proven returns the thumbprint of the key of a proof, "" if the proof is not valid for the request
// (RFC 9449, section 4.3).
func proven(r *http.Request, text, base, token string) (key, id, nonce string) {
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(parsed.Headers) != 1 || parsed.Headers[0].JSONWebKey == nil || !parsed.Headers[0].JSONWebKey.IsPublic() {
		return "", "", ""
	}
	header := parsed.Headers[0]
	var claims struct {
		ID     string `json:"jti"`
		Method string `json:"htm"`
		URL    string `json:"htu"`
		Hash   string `json:"ath"`
		Nonce  string `json:"nonce"`
		Issued int64  `json:"iat"`
	}
	if header.ExtraHeaders["typ"] != "dpop+jwt" || parsed.Claims(header.JSONWebKey, &claims) != nil {
		return "", "", ""
	}
	hash := ""
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		hash = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	age := time.Since(time.Unix(claims.Issued, 0))
	thumb, err := header.JSONWebKey.Thumbprint(crypto.SHA256)
	if err != nil || claims.Method != r.Method || claims.URL != base+r.URL.Path || claims.Hash != hash || claims.ID == "" || age.Abs() > time.Minute {
		return "", "", ""
	}
	return base64.RawURLEncoding.EncodeToString(thumb), claims.ID, claims.Nonce
}
