package oauth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// proofs prove the possession of a key with each request to one server (DPoP, RFC 9449).
type proofs struct {
	mu    sync.Mutex
	nonce string // for the next proof, "" until the server sends one
}

// send sends a request with a proof, and once more if the server requires a nonce in it. token
// is the token in the request, "" if it requests one.
func (p *proofs) send(next http.RoundTripper, req *http.Request, key *ecdsa.PrivateKey, token string) (*http.Response, error) {
	for again := false; ; again = true {
		p.mu.Lock()
		nonce := p.nonce
		p.mu.Unlock()
		text, err := proof(req, key, token, nonce)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		proved := req.Clone(req.Context())
		proved.Header.Set("DPoP", text)
		resp, err := next.RoundTrip(proved)
		if err != nil {
			return nil, err
		}
		given := resp.Header.Get("DPoP-Nonce")
		if given == "" || len(given) > maxNonce {
			return resp, nil
		}
		p.mu.Lock()
		p.nonce = given
		p.mu.Unlock()
		if again || given == nonce || !wantsNonce(resp) {
			return resp, nil
		}
		if req = rewound(req); req == nil {
			return resp, nil
		}
		drain(resp)
	}
}

// maxNonce is the longest accepted nonce, in bytes.
const maxNonce = 1 << 10

// proof returns the proof of a request (RFC 9449, 4.2).
func proof(req *http.Request, key *ecdsa.PrivateKey, token, nonce string) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	if err != nil {
		return "", err
	}
	target := *req.URL
	target.User, target.RawQuery, target.ForceQuery, target.Fragment, target.RawFragment = nil, "", false, "", ""
	claims := map[string]any{"jti": rand.Text(), "htm": req.Method, "htu": target.String(), "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// wantsNonce reports whether a request was rejected only for a missing nonce, by a protected
// resource (RFC 9449, 9) or an authorization server (8).
func wantsNonce(resp *http.Response) bool {
	const code = "use_dpop_nonce"
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	for _, c := range challenges {
		if c.Scheme == "dpop" && c.Params["error"] == code {
			return resp.StatusCode == http.StatusUnauthorized
		}
	}
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnauthorized {
		return false
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	var answer struct {
		Error string `json:"error"`
	}
	return json.Unmarshal(head, &answer) == nil && answer.Error == code
}

// A tokenProver adds proofs to a login's requests for a token.
type tokenProver struct {
	proofs
	next     http.RoundTripper
	login    *logins.Login // holds the key, which is created for the first proof
	resource *discovery    // may require a key; nil if the login already has one, or needs none
}

// proveTokens puts a tokenProver in front of the client of a login.
func proveTokens(client *http.Client, login *logins.Login, resource *discovery) {
	client.Transport = &tokenProver{next: client.Transport, login: login, resource: resource}
}

// RoundTrip implements http.RoundTripper. It is called by one login, one request at a time.
func (p *tokenProver) RoundTrip(req *http.Request) (*http.Response, error) {
	wanted := p.login.DPoPKey != "" || p.resource != nil && p.resource.proofs
	if !wanted || req.Method != http.MethodPost || !strings.HasPrefix(req.Header.Get("Content-Type"), formType) {
		return p.next.RoundTrip(req)
	}
	key, err := p.login.ProofKey()
	if err == nil && key == nil {
		key, err = p.login.NewProofKey()
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}
	return p.send(p.next, req, key, "")
}
